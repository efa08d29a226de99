// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package adoption tests programs that use celset as a library.
package adoption

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/celset/celset/test/controlplane"
)

// release is the version that the tests publish of the working tree. Each run uses another version, because Go caches versions.
var release = module.Version{Path: "github.com/celset/celset", Version: fmt.Sprintf("v0.37.99-test.%d", time.Now().UnixNano())}

// A file is a file of the working tree that git tracks.
type file struct{ root, name string }

func (f file) Path() string                 { return f.name }
func (f file) Lstat() (os.FileInfo, error)  { return os.Lstat(filepath.Join(f.root, f.name)) }
func (f file) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(f.root, f.name)) }

// A consumer is another module that requires the release. It downloads the release from a local module proxy that serves the
// working tree. All other modules come from the download cache.
type consumer struct {
	dir string
	env []string
}

func newConsumer(t *testing.T) consumer {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	require.NoError(t, err)
	proxy := t.TempDir()
	versions := filepath.Join(proxy, filepath.FromSlash(release.Path), "@v")
	require.NoError(t, os.MkdirAll(versions, 0o755))
	at := func(suffix string) string { return filepath.Join(versions, release.Version+suffix) }
	archive, err := os.Create(at(".zip"))
	require.NoError(t, err)
	tracked, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z").Output()
	require.NoError(t, err)
	var files []zip.File
	for name := range strings.SplitSeq(strings.TrimSuffix(string(tracked), "\x00"), "\x00") {
		files = append(files, file{root, name})
	}
	require.NoError(t, zip.Create(archive, release, files))
	require.NoError(t, archive.Close())
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(at(".mod"), mod, 0o600))
	require.NoError(t, os.WriteFile(at(".info"), fmt.Appendf(nil, `{"Version": %q}`, release.Version), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(versions, "list"), []byte(release.Version+"\n"), 0o600))
	settings, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE", "GOPROXY").Output()
	require.NoError(t, err)
	downloaded, others, _ := strings.Cut(strings.TrimSpace(string(settings)), "\n")
	t.Cleanup(func() {
		for _, cached := range []string{release.String(), filepath.Join("cache", "download", release.Path)} {
			require.NoError(t, os.RemoveAll(filepath.Join(downloaded, filepath.FromSlash(cached))))
		}
	})
	c := consumer{dir: t.TempDir()}
	c.env = append(os.Environ(), "GOWORK=off", "GOSUMDB=off", "GOFLAGS=-mod=mod -modcacherw", "GOBIN="+filepath.Join(c.dir, "bin"),
		"GOPROXY=file://"+proxy+",file://"+filepath.Join(downloaded, "cache", "download")+","+others)
	return c
}

func (c consumer) run(t *testing.T, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Env = c.dir, c.env
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", strings.Join(command, " "), out)
	return string(out)
}

func (c consumer) write(t *testing.T, name, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o600))
}

// TestModule checks that another module can require this module without a replace directive, and can list, vendor and install
// its packages.
func TestModule(t *testing.T) {
	c := newConsumer(t)
	c.write(t, "go.mod", fmt.Sprintf("module example.com/consumer\n\ngo 1.26.0\n\nrequire %s %s\n", release.Path, release.Version))
	c.write(t, "main.go", `package main

import (
	"fmt"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/plugin"
)

func main() { fmt.Println(plugin.Name, allocator.WithReasons() != nil) }
`)
	c.run(t, "go", "mod", "tidy")
	require.NotContains(t, c.run(t, "go", "list", "-m", "all"), " v0.0.0\n")
	require.Equal(t, "DynamicResourcesCEL true\n", c.run(t, "go", "run", "."))
	c.run(t, "go", "mod", "vendor")
	c.run(t, "go", "install", release.Path+"/cmd/kubectl-celset@"+release.Version)
	require.FileExists(t, filepath.Join(c.dir, "bin", "kubectl-celset"))
}
