// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns the text on one line. Besides harmful characters it also escapes line breaks and tabs.
func Line(text string) string {
	var line strings.Builder
	for len(text) > 0 {
		size := escape(&line, []byte(text[:min(len(text), utf8.UTFMax)]), false)
		text = text[size:]
	}
	return line.String()
}

// Error wraps err. The message of the result is the message of err on one line, cut after limit bytes.
func Error(err error, limit int) error { return lineError{err, limit} }

type lineError struct {
	cause error
	limit int
}

// Error implements error.
func (e lineError) Error() string {
	text := Line(e.cause.Error())
	if len(text) <= e.limit {
		return text
	}
	return strings.ToValidUTF8(text[:e.limit], "") + "..."
}

// Unwrap supports [errors.Is].
func (e lineError) Unwrap() error { return e.cause }

// buffer is the output of escape.
type buffer interface {
	Write([]byte) (int, error)
	WriteString(string) (int, error)
}

// escape writes the first character of the text to a buffer, escaped if it is harmful. It returns the length of the character
// in bytes. An invalid UTF-8 byte counts as a character. If keepLayout is set, line breaks and tabs are not escaped.
func escape(to buffer, text []byte, keepLayout bool) int {
	c, size := utf8.DecodeRune(text)
	switch {
	case c == utf8.RuneError && size == 1:
		_, _ = to.WriteString(`\x` + strconv.FormatUint(uint64(text[0])|0x100, 16)[1:])
	case keepLayout && (c == '\n' || c == '\t') || !isHarmful(c):
		_, _ = to.Write(text[:size])
	default:
		quoted := strconv.QuoteRuneToASCII(c)
		_, _ = to.WriteString(quoted[1 : len(quoted)-1])
	}
	return size
}

// isHarmful reports whether a character can do more than be shown. Harmful are control characters, Unicode line breaks, and
// characters that change the direction of writing, because they can make one name look like another.
func isHarmful(c rune) bool {
	return unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) || c == '\u2028' || c == '\u2029'
}
