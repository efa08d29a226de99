// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// writePrograms writes a module into dir. Each of its programs prints the word.
func writePrograms(t *testing.T, dir, word string, names ...string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+modulePath+"\ngo 1.26\n"), 0o600))
	for _, name := range names {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
		source := fmt.Sprintf("package main\nvar word = %q\nfunc main() { print(word) }\n", word)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "main.go"), []byte(source), 0o600))
	}
}

func output(t *testing.T, binary string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary).CombinedOutput()
	require.NoError(t, err)
	return string(out)
}

func TestBuildPrograms(t *testing.T) {
	source, binDir := t.TempDir(), t.TempDir()
	programs := compilation{{name: "program", pkg: "./program"}, {name: "renamed", pkg: "./other/v3"}}
	build := func() (info []os.FileInfo) {
		require.NoError(t, programs.build(t.Context(), source, binDir))
		for _, program := range programs {
			each, err := os.Stat(filepath.Join(binDir, program.name))
			require.NoError(t, err)
			info = append(info, each)
		}
		return info
	}
	writePrograms(t, source, "one", "program", "other/v3")
	first := build()
	for _, program := range programs {
		require.Equal(t, "one", output(t, filepath.Join(binDir, program.name)))
	}
	again := build()
	for i := range first {
		require.True(t, os.SameFile(first[i], again[i]), "an unchanged program is not replaced")
	}

	writePrograms(t, source, "two", "other/v3")
	changed := build()
	require.True(t, os.SameFile(first[0], changed[0]))
	require.False(t, os.SameFile(first[1], changed[1]))
	require.Equal(t, "one", output(t, filepath.Join(binDir, "program")))
	require.Equal(t, "two", output(t, filepath.Join(binDir, "renamed")))

	for i := range programs {
		programs[i].stamp = "-X main.word=stamped"
	}
	stamped := build()
	for _, program := range programs {
		require.Equal(t, "stamped", output(t, filepath.Join(binDir, program.name)))
	}

	programs = programs[:1]
	require.True(t, os.SameFile(stamped[0], build()[0]), "a program alone is that which was built with others")
}

func TestBuildFailureKeepsBinary(t *testing.T) {
	source, binDir := t.TempDir(), t.TempDir()
	program := compilation{{name: "program", pkg: "./program"}}
	writePrograms(t, source, "good", "program")
	require.NoError(t, program.build(t.Context(), source, binDir))

	require.NoError(t, os.WriteFile(filepath.Join(source, "program", "main.go"), []byte("package main\nfunc main() { undefined() }\n"), 0o600))
	err := program.build(t.Context(), source, binDir)
	require.ErrorContains(t, err, "build program: go build in "+source)
	require.ErrorContains(t, err, "undefined: undefined", "the compiler's message")
	require.Equal(t, "good", output(t, filepath.Join(binDir, "program")))
}

// TestConcurrentBuilds builds a changing program repeatedly, while other goroutines run the program. No run may see a partly
// written binary.
func TestConcurrentBuilds(t *testing.T) {
	binDir := t.TempDir()
	binary := filepath.Join(binDir, "program")
	root := t.TempDir()
	modules := []string{"one", "other"}
	for i, module := range modules {
		require.NoError(t, os.Mkdir(filepath.Join(root, module), 0o755))
		writePrograms(t, filepath.Join(root, module), fmt.Sprintf("word %d", i), "program")
	}
	group, ctx := errgroup.WithContext(t.Context())
	for round := range 6 {
		program := compilation{{name: "program", pkg: "./program", module: modules[round%2]}}
		group.Go(func() error {
			if err := program.build(ctx, root, binDir); err != nil {
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

func TestCompilations(t *testing.T) {
	root, err := ModuleRoot()
	require.NoError(t, err)
	compiled := func(names ...string) (all []string) {
		targets, err := resolveTargets(t.Context(), root, names)
		require.NoError(t, err)
		for _, c := range compilations(targets) {
			all = append(all, c.names())
		}
		return all
	}
	require.Equal(t, []string{"etcd"}, compiled(Etcd, Etcd))
	require.Equal(t, []string{"etcd and devcluster", "kwok"}, compiled(Etcd, Kwok, "devcluster"), "one of each module")
	require.Equal(t, []string{"etcd", "kube-apiserver", "celset-scheduler"}, compiled(Etcd, KubeAPIServer, CelsetScheduler), "one with the version of Kubernetes in each module")
	require.Equal(t, []string{"kube-apiserver and kubelet", "celset-node-init and celset-workload"}, compiled(KubeAPIServer, NodeInit, Workload, Kubelet), "and one without C")
	require.Equal(t, []string{"kube-apiserver-1.34", "kube-apiserver-1.35", "kube-apiserver"}, compiled("kube-apiserver-1.34", "kube-apiserver-1.35", KubeAPIServer))

	places := map[string]string{}
	for name := range dependencies {
		targets, err := resolveTargets(t.Context(), root, []string{name})
		require.NoError(t, err)
		place := filepath.Join(compilations(targets)[0].workDir(), targets[0].executable())
		require.Empty(t, places[place], "%s overwrites another program", name)
		places[place] = name
	}
	require.Equal(t, Etcd, places[filepath.Join(testModule, "server")], "go build names it so")
}

func TestResolveTargets(t *testing.T) {
	root, err := ModuleRoot()
	require.NoError(t, err)
	targets, err := resolveTargets(t.Context(), root, []string{Etcd, KubeAPIServer, Kwok, "devcluster"})
	require.NoError(t, err)
	require.Len(t, targets, 4)
	require.Equal(t, target{name: Etcd, pkg: "go.etcd.io/etcd/server/v3", module: testModule}, targets[0])
	require.Equal(t, "k8s.io/kubernetes/cmd/kube-apiserver", targets[1].pkg)
	require.Regexp(t, `-X k8s\.io/component-base/version\.gitVersion=v1\.\d+\.\d+ `, targets[1].stamp)
	require.Equal(t, "hack/tools/kwok", targets[2].module)
	require.Equal(t, target{name: DevCluster, pkg: "./devcluster", module: testModule}, targets[3])

	stamp := targets[1].stamp
	targets, err = resolveTargets(t.Context(), root, []string{CelsetScheduler})
	require.NoError(t, err)
	require.Equal(t, target{name: CelsetScheduler, pkg: "./cmd/celset-scheduler", stamp: stamp}, targets[0], "it is a kube-scheduler")

	targets, err = resolveTargets(t.Context(), root, []string{TopologyDriver})
	require.NoError(t, err)
	require.Equal(t, []target{{name: TopologyDriver, pkg: "./topologydriver/celset-topology-driver", module: testModule}}, targets)

	targets, err = resolveTargets(t.Context(), root, []string{"kube-apiserver-1.34"})
	require.NoError(t, err)
	require.Contains(t, targets[0].stamp, "gitVersion=v1.34.")

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

func TestProgress(t *testing.T) {
	failure := errors.New("failure")
	for name, test := range map[string]struct {
		took time.Duration
		err  error
		want string
	}{
		"quick":        {took: 900 * time.Millisecond},
		"slow":         {took: 3140 * time.Millisecond, want: "building kwok ...\nkwok built after 3.1s\n"},
		"very slow":    {took: 50 * time.Second, want: "building kwok ...\nstill building kwok, 21s\nstill building kwok, 41s\nkwok built after 50.0s\n"},
		"quick to err": {took: time.Millisecond, err: failure},
		"slow to err":  {took: time.Minute, err: failure, want: "building kwok ...\nstill building kwok, 21s\nstill building kwok, 41s\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				err := newProgress(&out).step("building kwok", "kwok built", func() error {
					time.Sleep(test.took)
					return test.err
				})
				require.Equal(t, test.err, err)
				require.Equal(t, test.want, out.String())
			})
		})
	}
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
