// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// Writer escapes harmful characters, except line breaks and tabs, and writes the result to another writer.
type Writer struct {
	to io.Writer
	// rest has the first bytes of a character whose remaining bytes have not been written yet.
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

// Glyph returns the character itself, or a replacement if it is harmful, for drawings with one column per character.
func Glyph(c rune) rune {
	if isHarmful(c) {
		return utf8.RuneError
	}
	return c
}

// Unescaped returns the writer below a [Writer], so that a program can write its own escape sequences. Foreign texts written to
// it must have passed [Glyph] or [Line].
func Unescaped(w io.Writer) io.Writer {
	if escaping, ok := w.(*Writer); ok {
		return escaping.to
	}
	return w
}
