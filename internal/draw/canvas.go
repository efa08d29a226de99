// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"bufio"
	"io"
	"unicode/utf8"

	"github.com/celset/celset/internal/printable"
)

// style is the colour of a character.
type style int

const (
	plainStyle style = iota
	chosenStyle
	takenStyle
)

// ANSI escape sequences (ECMA-48, SGR) that turn a style on, and all styles off.
const (
	ansiChosen = "\x1b[1;32m"
	ansiTaken  = "\x1b[31m"
	ansiReset  = "\x1b[0m"
)

func (s style) ansi() string {
	switch s {
	case chosenStyle:
		return ansiChosen
	case takenStyle:
		return ansiTaken
	default:
		return ""
	}
}

type glyph struct {
	char  rune
	style style
}

// A canvas is a page of characters that can be written in any order. Characters outside of the page are ignored.
type canvas struct {
	lines [][]glyph
}

func newCanvas(width, height int) *canvas {
	// The height is negative for a topology without devices.
	c := &canvas{lines: make([][]glyph, max(0, height))}
	for y := range c.lines {
		c.lines[y] = make([]glyph, max(0, width))
		for x := range c.lines[y] {
			c.lines[y][x] = glyph{char: ' '}
		}
	}
	return c
}

// width returns the width of the page.
func (c *canvas) width() int { return len(c.lines[0]) }

// text writes a text to the right, beginning at column x of line y.
func (c *canvas) text(x, y int, text string, style style) {
	for _, char := range text {
		c.set(x, y, char, style)
		x++
	}
}

func (c *canvas) set(x, y int, char rune, style style) {
	if y >= 0 && y < len(c.lines) && x >= 0 && x < len(c.lines[y]) {
		c.lines[y][x] = glyph{char: printable.Glyph(char), style: style}
	}
}

// horizontal writes a character at all columns from fromX to toX of a line.
func (c *canvas) horizontal(fromX, toX, y int, char rune, style style) {
	for x := min(fromX, toX); x <= max(fromX, toX); x++ {
		c.set(x, y, char, style)
	}
}

// writeTo writes the page without trailing blanks. The page has no control characters, so if w is an escaping writer, its
// colours may bypass the escaping.
func (c *canvas) writeTo(w io.Writer, color bool) error {
	if color {
		w = printable.Unescaped(w)
	}
	out := bufio.NewWriter(w)
	for _, line := range c.lines {
		writeLine(out, line, color)
	}
	return out.Flush()
}

// writeLine ignores errors, because the final Flush reports the first one.
func writeLine(out *bufio.Writer, line []glyph, color bool) {
	for len(line) > 0 && line[len(line)-1].char == ' ' {
		line = line[:len(line)-1]
	}
	current := plainStyle
	for _, g := range line {
		if color && g.style != current {
			writeSwitch(out, current, g.style)
			current = g.style
		}
		_, _ = out.WriteRune(g.char)
	}
	if color && current != plainStyle {
		writeSwitch(out, current, plainStyle)
	}
	_ = out.WriteByte('\n')
}

func writeSwitch(out *bufio.Writer, from, to style) {
	if from != plainStyle {
		_, _ = out.WriteString(ansiReset)
	}
	_, _ = out.WriteString(to.ansi())
}

// width returns the number of columns that a text takes on a canvas.
func width(text string) int {
	return utf8.RuneCountInString(text)
}
