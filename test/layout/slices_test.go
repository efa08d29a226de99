// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSlicesHaveAttributes checks that the scheduler's plugins list ResourceSlices through plugin/enrichment only. A plugin that asks
// the scheduler's own manager would see devices without the attributes of DeviceAttributes objects.
func TestSlicesHaveAttributes(t *testing.T) {
	root := filepath.Join("..", "..")
	var direct []string
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "plugin"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte("SharedDRAManager().ResourceSlices()")) {
			name, relErr := filepath.Rel(root, path)
			require.NoError(t, relErr)
			direct = append(direct, filepath.ToSlash(name))
		}
		return err
	}))
	require.Equal(t, []string{"plugin/profiles.go"}, direct, "profiles.go passes the list to plugin/enrichment; all others must get it from there")
}
