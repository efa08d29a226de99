// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
)

// A long expression on one line can have a mistake in each word. Printed with the line and a
// caret for each, that is a text of many megabytes, which takes long to make and ends up in
// conditions, events and logs.

const (
	// maxMessage is the length of a message, in bytes: it may have a text in it that the
	// expression made, or the types of a thousand arguments.
	maxMessage = 1024
	// maxMistakes is how many mistakes of one expression are printed.
	maxMistakes = 10
	// maxLine is how many characters of a line are printed around a mistake.
	maxLine = 1024
	// margin is what CEL begins a line of the expression with.
	margin = "\n |"
)

func shortened(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
}

// displayAll prints the first mistakes, and how many more there are.
func displayAll(expression string, mistakes []*cel.Error) string {
	shown := make([]string, 0, maxMistakes+1)
	for _, mistake := range mistakes[:min(len(mistakes), maxMistakes)] {
		shown = append(shown, display(expression, mistake.Location, mistake.Message))
	}
	if more := len(mistakes) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(shown, "\n")
}

// display prints message with the line of the expression and a caret below it, as CEL does,
// but in time that grows with the line and not with its square. Of a long line it prints what
// is near.
func display(expression string, at common.Location, message string) string {
	var text strings.Builder
	fmt.Fprint(&text, "ERROR: <input>:", at.Line(), ":", at.Column()+1, ": ", shortened(message))
	line, found := lineOf(expression, at.Line())
	if !found {
		return text.String()
	}
	before, after := cut(line, max(0, at.Column()))
	if len(line) > maxLine {
		count := utf8.RuneCountInString(before)
		_, before = cut(before, count-maxLine/2)
		after, _ = cut(after, maxLine-min(count, maxLine/2))
	}
	text.WriteString(margin + " " + strings.ReplaceAll(before+after, "\t", " "))
	text.WriteString(margin + " ")
	for _, character := range before {
		text.WriteString(asWide(character, ".", "\uff0e"))
	}
	below, _ := utf8.DecodeRuneInString(after)
	if after == "" {
		below = ' '
	}
	text.WriteString(asWide(below, "^", "\uff3e"))
	return text.String()
}

// lineOf is a line of an expression, counted from 1.
func lineOf(expression string, number int) (string, bool) {
	if number < 1 || expression == "" {
		return "", false
	}
	for line := range strings.SplitSeq(expression, "\n") {
		if number--; number == 0 {
			return line, true
		}
	}
	return "", false
}

// cut takes so many characters off the front, or as many as there are.
func cut(line string, characters int) (before, after string) {
	for i := range line {
		if characters <= 0 {
			return line[:i], line[i:]
		}
		characters--
	}
	return line, ""
}

// asWide is the sign below a character: East Asian ones are twice as wide, and CEL takes all
// that are not ASCII for such.
func asWide(character rune, narrow, wide string) string {
	if character >= utf8.RuneSelf {
		return wide
	}
	return narrow
}
