// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package yamlpath_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/celset/celset/internal/yamlpath"
)

// TestFind finds fields by names, indices, names of items and through aliases.
func TestFind(t *testing.T) {
	var document yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(`a:
  b: &b [1, {name: x, d: 2}]
  c.d: 3
e: *b
`), &document))
	for path, want := range map[string]struct{ line, column int }{
		"": {1, 1}, "a": {2, 3}, "a.b[0]": {2, 10}, "a.b[x].d": {2, 26}, "a[c.d]": {3, 8}, `a["c.d"]`: {3, 8}, "e[1].d": {2, 26}, "a.b[": {2, 6},
		"a.missing.d": {2, 3}, "a.b[7]": {2, 6}, "a.b[-1]": {2, 6}, ".a": {2, 3},
	} {
		key, value := yamlpath.Find(document.Content[0], path)
		require.Equal(t, want, struct{ line, column int }{value.Line, value.Column}, path)
		require.Equal(t, path == "" || path == "a.b[0]" || path == "a.b[x]", key == nil, path)
	}
}
