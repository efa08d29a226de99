// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package normal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEachRuleHasAnExpression checks that the name of each rule occurs in a transcript.
func TestEachRuleHasAnExpression(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "testdata", "rules", "*.txt"))
	require.NoError(t, err)
	var transcripts strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		transcripts.Write(content)
	}
	names := []string{inlineBinding, UnrollConjunct, UnrollCount, CompareSorted, CompareAll}
	for _, r := range rules {
		names = append(names, r.name)
	}
	for _, name := range names {
		require.Contains(t, transcripts.String(), "\n"+name+": ", "the rule has no expression")
	}
}
