// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/topology"
)

// TestTerminal writes texts in pieces of each size.
func TestTerminal(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb\n":                         "a\tb\n",
		"größer → 4×4":                   "größer → 4×4",
		"\x1b]52;c;ZWNobwo=\x07":         `\x1b]52;c;ZWNobwo=\a`,
		"\x1b[2J\r\x00\x7f":              `\x1b[2J\r\x00\x7f`,
		"\u009b31m":                      `\u009b31m`,
		"\x9b31m \xff":                   `\x9b31m \xff`,
		topology.Colors()[0] + "x\x1b[m": topology.Colors()[0] + `x\x1b[m`,
	} {
		for size := 1; size <= len(text); size++ {
			if bytes.ContainsRune([]byte(text), '\x1b') && size < len(text) {
				// A color is written at once.
				continue
			}
			var out bytes.Buffer
			w := &terminal{to: &out}
			for rest := []byte(text); len(rest) > 0; {
				n, err := w.Write(rest[:min(size, len(rest))])
				require.NoError(t, err)
				rest = rest[n:]
			}
			require.Equal(t, want, out.String(), "%q in pieces of %d", text, size)
		}
	}
}
