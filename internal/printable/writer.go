// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// Writer escapes what a terminal would obey. It leaves line ends and tabs.
type Writer struct {
	to io.Writer
	// rest is the beginning of a character whose end was not written yet.
	rest []byte
}

// NewWriter returns a Writer that writes to another one.
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

// Glyph returns a character as a drawing can show it: one that a terminal would obey is replaced.
func Glyph(c rune) rune {
	if isHarmful(c) {
		return utf8.RuneError
	}
	return c
}

// Unescaped returns the writer below a [Writer], for escape sequences of one's own. What is written there must have passed
// [Glyph] or [Line].
func Unescaped(w io.Writer) io.Writer {
	if escaping, ok := w.(*Writer); ok {
		return escaping.to
	}
	return w
}
