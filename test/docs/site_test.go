// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSite makes the site from the pages. The generator fails if a link has no target, in the site or on GitHub. The content
// security policy of the site forbids scripts, and styles in elements.
func TestSite(t *testing.T) {
	absolute, err := filepath.Abs(root)
	require.NoError(t, err)
	site := t.TempDir()
	command := exec.CommandContext(t.Context(), "go", "run", "-C", filepath.Join(absolute, "hack/tools/site"), ".", absolute, site)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	made := 0
	require.NoError(t, fs.WalkDir(os.DirFS(site), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".html" {
			return err
		}
		made++
		content, err := os.ReadFile(filepath.Join(site, path))
		for _, forbidden := range []string{"<script", " style=", "<style", "javascript:"} {
			require.NotContains(t, string(content), forbidden, path)
		}
		return err
	}))
	require.Greater(t, made, len(pages))

	broken := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(broken, "docs"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(broken, "README.md"), []byte("# a\n\n[b](docs/b.md) [c](docs/README.md#c) [d](#a)\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(broken, "docs", "README.md"), []byte("# b\n\n<a id=\"b\"></a>c\n"), 0o600))
	output, err = exec.CommandContext(t.Context(), "go", "run", "-C", filepath.Join(absolute, "hack/tools/site"), ".", broken, t.TempDir()).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(output), "README.md: link docs/b.md: ")
	require.Contains(t, string(output), "README.md: link docs/README.md#c: docs/README.md has no anchor #c")
	require.Contains(t, string(output), "docs/README.md: there are two anchors #b")
	require.Equal(t, 2, strings.Count(string(output), " link "), "%s", output)
}
