// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/celset/celset/internal/topology"
)

// terminal is the one writer to the terminal. Anybody may write an object with a control character in it, which
// would move the cursor, or have a terminal write to the clipboard: those are shown as Go escapes them. Line ends
// and tabs are left, and so are the colors of drawings.
type terminal struct {
	to io.Writer
	// rest is the beginning of a character.
	rest []byte
}

// Write implements [io.Writer].
func (t *terminal) Write(text []byte) (int, error) {
	all := append(t.rest, text...)
	t.rest = nil
	var out bytes.Buffer
	for len(all) > 0 {
		if !utf8.FullRune(all) {
			t.rest = bytes.Clone(all)
			break
		}
		size := escape(&out, all)
		all = all[size:]
	}
	if _, err := t.to.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(text), nil
}

// escape writes the first character and returns how many bytes it has.
func escape(out *bytes.Buffer, text []byte) int {
	for _, color := range topology.Colors() {
		if bytes.HasPrefix(text, []byte(color)) {
			out.WriteString(color)
			return len(color)
		}
	}
	c, size := utf8.DecodeRune(text)
	switch {
	case c == utf8.RuneError && size == 1:
		fmt.Fprintf(out, `\x%02x`, text[0])
	case c == '\n' || c == '\t' || !unicode.IsControl(c):
		out.Write(text[:size])
	default:
		quoted := strconv.QuoteRuneToASCII(c)
		out.WriteString(quoted[1 : len(quoted)-1])
	}
	return size
}

// unwrapped is what a terminal writes to.
func unwrapped(w io.Writer) io.Writer {
	if t, ok := w.(*terminal); ok {
		return t.to
	}
	return w
}
