// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package printable_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/printable"
)

// TestWriter writes texts in pieces of different sizes. The output must not depend on the size.
func TestWriter(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb\n":                   "a\tb\n",
		"größer → 4×4":             "größer → 4×4",
		"\x1b]52;c;ZWNobwo=\x07":   `\x1b]52;c;ZWNobwo=\a`,
		"\x1b[2J\r\x00\x7f":        `\x1b[2J\r\x00\x7f`,
		"\u009b31m":                `\u009b31m`,
		"\x9b31m \xff":             `\x9b31m \xff`,
		"\x1b[31m\x1b[0m\x1b[1;3m": `\x1b[31m\x1b[0m\x1b[1;3m`,
		"a\u202eb\u2028":           `a\u202eb\u2028`,
	} {
		for size := 1; size <= len(text); size++ {
			var out bytes.Buffer
			w := printable.NewWriter(&out)
			for rest := []byte(text); len(rest) > 0; {
				n, err := w.Write(rest[:min(size, len(rest))])
				require.NoError(t, err)
				rest = rest[n:]
			}
			require.Equal(t, want, out.String(), "%q in pieces of %d", text, size)
			require.Equal(t, strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(want), printable.Line(text))
		}
	}
}

// TestLine checks that Line returns no harmful character for any text.
func TestLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := printable.Line(string(rapid.SliceOf(rapid.Byte()).Draw(t, "text")))
		for _, c := range line {
			require.Equal(t, c, printable.Glyph(c))
		}
		require.NotContains(t, line, "\n")
	})
}

func TestError(t *testing.T) {
	err := printable.Error(errors.Join(io.EOF, errors.New("\x1b[31mI1129 10:00:00 all is well\r\n!\x07x")), 20)
	require.ErrorIs(t, err, io.EOF)
	require.EqualError(t, err, `EOF\n\x1b[31mI1129 1...`)
}
