// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/test/controlplane"
)

// EditorPackages installs the npm packages of web/editor into a directory, and returns the directory. Without npm, it skips the
// test, or fails it in CI.
func EditorPackages(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil && os.Getenv("CI") == "" {
		t.Skip("needs npm")
	}
	root, err := controlplane.ModuleRoot()
	require.NoError(t, err)
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "build.js", "editor.js"} {
		content, err := os.ReadFile(filepath.Join(root, "web", "editor", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	command := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	command.Dir = dir
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return dir
}

// AxeIn returns the path of axe-core in a directory of [EditorPackages].
func AxeIn(dir string) string { return filepath.Join(dir, "node_modules", "axe-core", "axe.min.js") }

// RequireAccessible checks the shown view with axe-core in light and dark mode and on a narrow screen. Only the contents may scroll
// sideways, not the page. It saves screenshots if $CELSET_PICTURES is set.
func (b *Tab) RequireAccessible(axe, name string) {
	b.Helper()
	for _, view := range []struct {
		width  int
		scheme string
	}{{390, "light"}, {1280, "dark"}, {1280, "light"}} {
		b.View(view.width, 800, view.scheme)
		require.Empty(b, b.Axe(axe), "%s, width %d, %s", name, view.width, view.scheme)
		require.Equal(b, true, b.Evaluate(`document.documentElement.scrollWidth <= innerWidth`), "%s scrolls sideways at width %d", name, view.width)
		b.Shoot(fmt.Sprintf("page-%s-%d-%s.png", name, view.width, view.scheme), view.width, view.scheme)
	}
}
