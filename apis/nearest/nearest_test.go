// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nearest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestName(t *testing.T) {
	for _, test := range []struct {
		name       string
		candidates []string
		want       string
	}{
		{"celset.dve", []string{"mla.example.com", "celset.dev"}, "celset.dev"},
		{"celset.io", []string{"celset.dev"}, ""},
		{"indx", []string{"row", "index", "indexes"}, "index"},
		{"numa_node", []string{"numaNode"}, "numaNode"},
		{"Index", []string{"index"}, "index"},
		{"a", []string{"b", "c"}, "b"},
		{"a", []string{"a"}, ""},
		{"", []string{"a"}, "a"},
		{"ring4", nil, ""},
		{"row", []string{"col"}, ""},
		{"nic.example.com", []string{"gpu.example.com"}, ""},
		{strings.Repeat("a", maxLength+1), []string{strings.Repeat("a", maxLength)}, ""},
	} {
		require.Equal(t, test.want, Name(test.name, slices.Values(test.candidates)), test.name)
	}
	require.Equal(t, `; did you mean "celset.dev/ring4"?`, DidYouMean("celset.dev/", "ring", slices.Values([]string{"ring4"})))
	require.Empty(t, DidYouMean("celset.dev/", "ring", slices.Values([]string{"grid"})))
	many := make([]string, maxCandidates, maxCandidates+1)
	require.Empty(t, Name("ring", slices.Values(append(many, "ring4"))))
}
