// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// Writer escapes harmful characters, but keeps line ends and tabs.
type Writer struct {
	to io.Writer
	// rest is the beginning of an incomplete character.
	rest []byte
}

// NewWriter returns a Writer that escapes texts and passes them on to another writer.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Write implements [io.Writer].
func (w *Writer) Write(text []byte) (int, error) {
	all := append(w.rest, text...)
	w.rest = nil
	var out bytes.Buffer
	for len(all) > 0 {
		if !utf8.FullRune(all) {
			w.rest = bytes.Clone(all)
			break
		}
		all = all[escape(&out, all, true):]
	}
	if _, err := w.to.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Glyph returns a character for a drawing. It replaces a harmful character.
func Glyph(c rune) rune {
	if isHarmful(c) {
		return utf8.RuneError
	}
	return c
}

// Unescaped returns the writer below a [Writer], for the program's own escape sequences. All other text must have passed [Glyph]
// or [Line].
func Unescaped(w io.Writer) io.Writer {
	if escaping, ok := w.(*Writer); ok {
		return escaping.to
	}
	return w
}
