// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// writeProgram makes dir a module whose program prints a word.
func writeProgram(t *testing.T, dir, word string) {
	t.Helper()
	for name, content := range map[string]string{
		"go.mod":  "module " + modulePath + "\ngo 1.26\n",
		"main.go": fmt.Sprintf("package main\nvar word = %q\nfunc main() { print(word) }\n", word),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
}

func output(t *testing.T, binary string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary).CombinedOutput()
	require.NoError(t, err)
	return string(out)
}

func TestBuildTarget(t *testing.T) {
	source, binDir := t.TempDir(), t.TempDir()
	program := target{name: "program", pkg: ".", dir: source}
	binary := filepath.Join(binDir, "program")

	writeProgram(t, source, "one")
	require.NoError(t, program.build(t.Context(), binDir))
	require.Equal(t, "one", output(t, binary))
	first, err := os.Stat(binary)
	require.NoError(t, err)

	require.NoError(t, program.build(t.Context(), binDir))
	second, err := os.Stat(binary)
	require.NoError(t, err)
	require.True(t, os.SameFile(first, second), "an unchanged program is not replaced")

	writeProgram(t, source, "two")
	require.NoError(t, program.build(t.Context(), binDir))
	require.Equal(t, "two", output(t, binary))

	stamped := program
	stamped.ldflags = "-X main.word=stamped"
	require.NoError(t, stamped.build(t.Context(), binDir))
	require.Equal(t, "stamped", output(t, binary))
}

func TestBuildFailureKeepsBinary(t *testing.T) {
	source, binDir := t.TempDir(), t.TempDir()
	program := target{name: "program", pkg: ".", dir: source}
	writeProgram(t, source, "good")
	require.NoError(t, program.build(t.Context(), binDir))

	require.NoError(t, os.WriteFile(filepath.Join(source, "main.go"), []byte("package main\nfunc main() { undefined() }\n"), 0o600))
	err := program.build(t.Context(), binDir)
	require.ErrorContains(t, err, "build program: go build in "+source)
	require.ErrorContains(t, err, "undefined: undefined", "the compiler's message")
	require.Equal(t, "good", output(t, filepath.Join(binDir, "program")))
}

// TestConcurrentBuilds has builders of a program that changes, and others that
// run it all the while: none may see half a binary.
func TestConcurrentBuilds(t *testing.T) {
	binDir := t.TempDir()
	binary := filepath.Join(binDir, "program")
	var sources []string
	for i := range 2 {
		sources = append(sources, t.TempDir())
		writeProgram(t, sources[i], fmt.Sprintf("word %d", i))
	}
	group, ctx := errgroup.WithContext(t.Context())
	for round := range 6 {
		program := target{name: "program", pkg: ".", dir: sources[round%2]}
		group.Go(func() error {
			if err := program.build(ctx, binDir); err != nil {
				return err
			}
			out, err := exec.CommandContext(ctx, binary).CombinedOutput()
			if err != nil {
				return fmt.Errorf("run: %w: %s", err, out)
			}
			if got := string(out); got != "word 0" && got != "word 1" {
				return fmt.Errorf("the program printed %q", got)
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
}

func TestLockFileHonoursContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := lockFile(t.Context(), path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = lockFile(ctx, path)
	require.ErrorIs(t, err, context.Canceled)

	require.NoError(t, held.Close())
	again, err := lockFile(ctx, path)
	require.NoError(t, err, "a free lock needs no waiting")
	require.NoError(t, again.Close())
}

func TestResolveTargets(t *testing.T) {
	root, err := ModuleRoot()
	require.NoError(t, err)
	targets, err := resolveTargets(t.Context(), root, []string{Etcd, KubeAPIServer, Kwok, "devcluster"})
	require.NoError(t, err)
	require.Len(t, targets, 4)
	require.Equal(t, target{name: Etcd, pkg: "go.etcd.io/etcd/server/v3", dir: root}, targets[0])
	require.Equal(t, "k8s.io/kubernetes/cmd/kube-apiserver", targets[1].pkg)
	require.Regexp(t, `-X k8s\.io/component-base/version\.gitVersion=v1\.\d+\.\d+ `, targets[1].ldflags)
	require.Equal(t, filepath.Join(root, "hack", "tools", "kwok"), targets[2].dir)
	require.Equal(t, target{name: "devcluster", pkg: "./cmd/devcluster", dir: root}, targets[3])

	require.Empty(t, targets[3].ldflags)

	stamp := targets[1].ldflags
	targets, err = resolveTargets(t.Context(), root, []string{CelsetScheduler})
	require.NoError(t, err)
	require.Equal(t, target{name: CelsetScheduler, pkg: "./cmd/celset-scheduler", dir: root, ldflags: stamp}, targets[0], "it is a kube-scheduler")

	targets, err = resolveTargets(t.Context(), root, []string{Containerd, CNILoopback})
	require.NoError(t, err)
	require.Equal(t, []string{"build", "-o", "out", "-tags", "no_btrfs,no_devmapper,no_zfs", "github.com/containerd/containerd/v2/cmd/containerd"}, targets[0].args("out"))
	require.Empty(t, targets[0].environment())
	require.Equal(t, []string{"CGO_ENABLED=0"}, targets[1].environment())

	for name, want := range map[string]string{
		"no-such-command": "neither a known dependency nor a command",
		"../cmd":          "not the name of a binary",
		"..":              "not the name of a binary",
		"":                "not the name of a binary",
	} {
		_, err := resolveTargets(t.Context(), root, []string{name})
		require.ErrorContains(t, err, want, "name %q", name)
	}
}

func TestAllBinaries(t *testing.T) {
	root, err := ModuleRoot()
	require.NoError(t, err)
	names, err := allBinaries(root)
	require.NoError(t, err)
	require.Subset(t, names, []string{Etcd, KubeAPIServer, KubeControllerManager, Kubectl, Kwok, "devcluster"})
	require.Subset(t, NodeBinaries(), []string{Kubelet, Containerd, ContainerdShim, Runc, Workload})
	for _, name := range NodeBinaries() {
		require.NotContains(t, names, name, "only Linux can build it")
	}
}

func TestVersionStamp(t *testing.T) {
	stamp := VersionStamp("v1.37.1")
	for _, flag := range []string{"gitVersion=v1.37.1", "gitMajor=1", "gitMinor=37"} {
		require.Contains(t, stamp, "-X k8s.io/component-base/version."+flag)
		require.Contains(t, stamp, "-X k8s.io/client-go/pkg/version."+flag)
	}
}

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
