// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
)

// TestModules checks the go.mod of the root module and of this module. The root module must not require this module, and must
// not replace modules. If both require a module, they must require the same version, so that tests run the code of a release.
// All modules of Kubernetes must have the same patch version.
func TestModules(t *testing.T) {
	shipped, tests := readMod(t, "go.mod"), readMod(t, "test/go.mod")
	require.Empty(t, shipped.Replace)
	require.Empty(t, shipped.Tool, "programs that tests run are tools of the module of tests")
	versions := map[string]string{}
	for _, r := range shipped.Require {
		require.NotEqual(t, module+"/test", r.Mod.Path)
		versions[r.Mod.Path] = r.Mod.Version
	}
	patch := strings.TrimPrefix(versions["k8s.io/kubernetes"], "v1.")
	for _, r := range append(shipped.Require, tests.Require...) {
		if version, found := versions[r.Mod.Path]; found {
			require.Equal(t, version, r.Mod.Version, r.Mod.Path)
		}
		if strings.HasPrefix(r.Mod.Path, "k8s.io/") && strings.HasPrefix(r.Mod.Version, "v0.") && !strings.HasPrefix(r.Mod.Version, "v0.0.0-") {
			require.Equal(t, "v0."+patch, r.Mod.Version, r.Mod.Path)
		}
	}
}

// TestDevelopmentIsElsewhere checks that the root module does not require modules that only development needs, such as servers,
// renderers and drivers.
func TestDevelopmentIsElsewhere(t *testing.T) {
	for _, r := range readMod(t, "go.mod").Require {
		if r.Indirect {
			continue
		}
		for _, path := range []string{
			"go.etcd.io/", "sigs.k8s.io/kustomize", "github.com/rogpeppe/go-internal", "github.com/gorilla/websocket", "tags.cncf.io/", "github.com/NVIDIA/",
		} {
			require.False(t, strings.HasPrefix(r.Mod.Path, path), "%s is for the module of tests", r.Mod.Path)
		}
	}
}

// TestRootStartsNoProcess checks that no file in the root module, tests included, imports os/exec. Tests that start a process
// must be in this module.
func TestRootStartsNoProcess(t *testing.T) {
	root, read := filepath.Join("..", ".."), 0
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			if path != root && (err == nil || strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin" || entry.Name() == "hack") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range file.Imports {
			require.NotEqual(t, `"os/exec"`, i.Path.Value, path)
		}
		read++
		return nil
	}))
	require.Greater(t, read, 500)
}

func readMod(t *testing.T, path string) *modfile.File {
	t.Helper()
	name := filepath.Join("..", "..", path)
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	file, err := modfile.Parse(name, content, nil)
	require.NoError(t, err)
	return file
}
