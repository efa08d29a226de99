// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestModuleRootAbove(t *testing.T) {
	root := t.TempDir()
	tool := filepath.Join(root, "hack", "tool")
	require.NoError(t, os.MkdirAll(tool, 0o755))
	write := func(dir, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(content), 0o600))
	}
	write(tool, "module "+modulePath+"/hack/tool\n")
	_, err := moduleRootAbove(tool)
	require.ErrorContains(t, err, "no go.mod of "+modulePath)

	write(root, "// comment\nmodule "+modulePath+" // comment\n")
	for _, dir := range []string{root, tool, filepath.Join(tool, "not", "there")} {
		got, err := moduleRootAbove(dir)
		require.NoError(t, err)
		require.Equal(t, root, got)
	}
}

func TestBinDir(t *testing.T) {
	t.Setenv(BinDirEnv, "")
	root, err := ModuleRoot()
	require.NoError(t, err)
	dir, err := BinDir()
	require.NoError(t, err)
	require.Equal(t, filepath.Join(root, "bin"), dir)

	t.Setenv(BinDirEnv, "/somewhere/else")
	dir, err = BinDir()
	require.NoError(t, err)
	require.Equal(t, "/somewhere/else", dir)
}
