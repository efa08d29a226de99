// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
)

// Mistakes of a long line are shown with what is near, and not all of them.
func TestMistakesOfLongLines(t *testing.T) {
	environment := newEnvironment(t, cel.Config{})
	_, err := environment.Compile("true || " + strings.Repeat(" ", 3000) + "nobody &&" + strings.Repeat(" ", 3000) + "é" + " && nothing")
	require.ErrorContains(t, err, "ERROR: <input>:1:")
	_, err = environment.Compile("true || " + strings.Repeat(" ", 3000) + "nobody &&" + strings.Repeat(" ", 3000) + "nothing")
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 6)
	require.Equal(t, "ERROR: <input>:1:3009: undeclared reference to 'nobody' (in container '')", lines[0])
	require.Equal(t, "ERROR: <input>:1:6018: undeclared reference to 'nothing' (in container '')", lines[3])
	for i, name := range map[int]string{0: "nobody", 3: "nothing"} {
		require.Less(t, len(lines[i+1]), 2000)
		require.Equal(t, strings.Index(lines[i+1], name), strings.Index(lines[i+2], "^"), "the caret is below %s", name)
	}
}

func TestManyMistakes(t *testing.T) {
	environment := newEnvironment(t, cel.Config{})
	_, err := environment.Compile(strings.Repeat("nobody && ", 30) + "true")
	require.Equal(t, 10, strings.Count(err.Error(), "ERROR: "))
	require.True(t, strings.HasSuffix(err.Error(), "\nand 20 more"), err.Error())

	_, err = environment.Compile("f(" + strings.Repeat("1,", 4000) + "1)")
	require.Less(t, len(err.Error()), 5000)
}
