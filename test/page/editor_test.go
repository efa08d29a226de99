// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/internal/browser"
)

// TestEditorIsCurrent builds the editor from web/editor, and compares it with the committed files.
func TestEditorIsCurrent(t *testing.T) {
	cases.OnlyNightly(t, "needs npm")
	dir := browser.EditorPackages(t)
	built := t.TempDir()
	command := exec.CommandContext(t.Context(), "node", "build.js", built)
	command.Dir = dir
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	for _, name := range []string{"editor.js", "editor.LICENSES.txt"} {
		want, err := os.ReadFile(filepath.Join("..", "..", "internal", "page", "assets", name))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(built, name))
		require.NoError(t, err)
		require.True(t, string(want) == string(got), "%s is not current: run \"make editor\"", name)
	}
}
