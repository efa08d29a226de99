// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"strings"
	"testing"

	"github.com/google/cel-go/common"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// TestDisplayIsCELs tests that mistakes in short lines are printed as CEL prints them.
func TestDisplayIsCELs(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		expression := rapid.StringOfN(rapid.SampledFrom([]rune("ab\t\n 世é😀'")), 0, 40, -1).Draw(t, "expression")
		at := common.NewLocation(rapid.IntRange(-1, 5).Draw(t, "line"), rapid.IntRange(-1, 50).Draw(t, "column"))
		message := rapid.StringN(0, 5, -1).Draw(t, "message")
		want := (&common.Error{Location: at, Message: message}).ToDisplayString(common.NewTextSource(expression))
		require.Equal(t, want, display(expression, at, message))
	})
}

// TestDisplayOfLongLines tests that only the part around the mistake is printed, and that the caret is below the right
// character.
func TestDisplayOfLongLines(t *testing.T) {
	line := strings.Repeat("é", 3000) + "X" + strings.Repeat("a", 3000)
	lines := strings.Split(display("1 +\n"+line, common.NewLocation(2, 3000), "no"), "\n")
	require.Len(t, lines, 3)
	require.Equal(t, "ERROR: <input>:2:3001: no", lines[0])
	shown, caret := []rune(lines[1]), []rune(lines[2])
	require.Len(t, shown, len(" | ")+maxLine)
	require.Equal(t, 'X', shown[len(caret)-1])
	require.Equal(t, '^', caret[len(caret)-1])
}
