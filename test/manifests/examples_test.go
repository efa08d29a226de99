// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/celset/celset/test/internal/render"
)

// TestExamplesHaveNamesOfTheirOwn checks that no two examples contain objects of the same kind and name. If a user applied
// both, the second object would replace the first.
func TestExamplesHaveNamesOfTheirOwn(t *testing.T) {
	type identity struct {
		kind            schema.GroupKind
		namespace, name string
	}
	const folder = "../../manifests/examples"
	seen := map[identity]string{}
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" || strings.Contains(filepath.ToSlash(path), "/tests/") {
			return err // users do not apply the objects of test cases
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		objects, err := render.Decode(content)
		require.NoError(t, err, path)
		for _, object := range objects {
			is := identity{object.GroupVersionKind().GroupKind(), object.GetNamespace(), object.GetName()}
			require.Empty(t, seen[is], "%s has %s, which another example has, too", path, is)
			seen[is] = path
		}
		return nil
	}))
	require.Greater(t, len(seen), 40)
}
