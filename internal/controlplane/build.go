// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"golang.org/x/sync/errgroup"
)

// concurrentBuilds is low because one `go build` occupies all processors; two
// overlap one's linking with the other's compiling.
const concurrentBuilds = 2

// Build brings binaries up to date and returns their directory: binDir, or what
// [BinDir] returns if that is empty. A name is one of the constants of this
// package or that of a folder in cmd/; without names, all of them are built but
// [NodeBinaries].
//
// `go build` decides what there is to do, which takes half a second a binary if
// that is nothing. Any number of processes may build at once, and while others
// run the binaries: one becomes visible when it is complete. Lines on progress
// (which may be nil) tell about steps that take longer than a second.
func Build(ctx context.Context, binDir string, progress io.Writer, names ...string) (string, error) {
	return buildBinaries(ctx, binDir, newProgress(progress), names)
}

func buildBinaries(ctx context.Context, binDir string, progress *progress, names []string) (string, error) {
	root, err := ModuleRoot()
	if err != nil {
		return "", fmt.Errorf("build binaries: %w", err)
	}
	if binDir == "" {
		if binDir, err = BinDir(); err != nil {
			return "", err
		}
	}
	if len(names) == 0 {
		if names, err = allBinaries(root); err != nil {
			return "", err
		}
	}
	targets, err := resolveTargets(ctx, root, names)
	if err != nil {
		return "", err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentBuilds)
	for _, target := range targets {
		group.Go(func() error {
			return progress.step("building "+target.name, target.name+" built", func() error {
				return target.build(ctx, binDir)
			})
		})
	}
	return binDir, group.Wait()
}

// target is one run of `go build`.
type target struct {
	name    string
	pkg     string
	dir     string // absolute, of the module to build in
	ldflags string
	tags    string
	static  bool
}

func resolveTargets(ctx context.Context, root string, names []string) ([]target, error) {
	targets := make([]target, 0, len(names))
	versions := map[string]string{}
	for _, name := range names {
		t, isKubernetes, err := targetOf(root, name)
		if err != nil {
			return nil, err
		}
		if isKubernetes {
			if versions[t.dir] == "" {
				if versions[t.dir], err = kubernetesVersion(ctx, t.dir); err != nil {
					return nil, err
				}
			}
			t.ldflags = VersionStamp(versions[t.dir])
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// targetOf finds a dependency or a command of this module. celset-scheduler is a
// kube-scheduler, and says so.
func targetOf(root, name string) (t target, isKubernetes bool, err error) {
	if dep, ok := dependencies[name]; ok {
		return target{name: name, pkg: dep.pkg, dir: filepath.Join(root, dep.dir), tags: dep.tags, static: dep.static}, dep.kubernetes, nil
	}
	t, err = commandTarget(root, name)
	return t, name == CelsetScheduler, err
}

func commandTarget(root, name string) (target, error) {
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return target{}, fmt.Errorf("build %q: not the name of a binary", name)
	}
	if _, err := os.Stat(filepath.Join(root, "cmd", name)); err != nil {
		return target{}, fmt.Errorf("build %s: neither a known dependency nor a command of this module: %w", name, err)
	}
	return target{name: name, pkg: "./cmd/" + name, dir: root}, nil
}

// kubernetesVersion asks the graph of the module in dir: the version of the servers is that of
// the libraries that it compiles against.
func kubernetesVersion(ctx context.Context, dir string) (string, error) {
	out, err := runGo(ctx, dir, nil, "list", "-m", "-f", "{{.Version}}", kubernetesModule)
	if err != nil {
		return "", fmt.Errorf("find the version of %s: %w", kubernetesModule, err)
	}
	return strings.TrimSpace(out), nil
}

// VersionStamp returns flags for the linker that set what a release build of Kubernetes would
// set. Without it a server calls itself v0.0.0, and `kubectl version` fails to compare.
func VersionStamp(version string) string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			fmt.Sprintf("-X %s.gitVersion=%s", pkg, version),
			fmt.Sprintf("-X %s.gitMajor=%s", pkg, major),
			fmt.Sprintf("-X %s.gitMinor=%s", pkg, minor),
			fmt.Sprintf("-X %s.gitTreeState=archive", pkg))
	}
	return strings.Join(flags, " ")
}

// build runs `go build` into a place of its own, where an unchanged result lets
// it skip linking, and publishes the result by a rename.
func (t target) build(ctx context.Context, binDir string) error {
	workDir := filepath.Join(binDir, ".build")
	if err := os.MkdirAll(workDir, 0o755); err != nil {
		return fmt.Errorf("build %s: %w", t.name, err)
	}
	lock, err := lockFile(ctx, filepath.Join(workDir, t.name+".lock"))
	if err != nil {
		return fmt.Errorf("build %s: wait for another build of it: %w", t.name, err)
	}
	defer lock.Close()

	built := filepath.Join(workDir, t.name)
	if _, err := runGo(ctx, t.dir, t.environment(), t.args(built)...); err != nil {
		return fmt.Errorf("build %s: %w", t.name, err)
	}
	if err := publish(built, filepath.Join(binDir, t.name)); err != nil {
		return fmt.Errorf("build %s: %w", t.name, err)
	}
	return nil
}

func (t target) args(output string) []string {
	args := []string{"build", "-o", output}
	if t.ldflags != "" {
		args = append(args, "-ldflags", t.ldflags)
	}
	if t.tags != "" {
		args = append(args, "-tags", t.tags)
	}
	return append(args, t.pkg)
}

// environment is what the go command gets beside that of this process.
func (t target) environment() []string {
	if t.static {
		return []string{"CGO_ENABLED=0"}
	}
	return nil
}

// publish makes public the same file as built, at once. `go build` replaces its
// output instead of overwriting it, so the two are one file until it has
// something new.
func publish(built, public string) error {
	from, err := os.Stat(built)
	if err != nil {
		return err
	}
	if to, err := os.Stat(public); err == nil && os.SameFile(from, to) {
		return nil
	}
	next := built + ".next"
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	if err := os.Link(built, next); err != nil {
		return err
	}
	return os.Rename(next, public)
}

// lockFile takes the lock on a file, created if need be, waiting until the
// context ends. Closing the result releases it, as does the end of the process.
func lockFile(ctx context.Context, path string) (*fileutil.LockedFile, error) {
	const retry = 100 * time.Millisecond
	for {
		lock, err := tryLockFile(path)
		if !errors.Is(err, fileutil.ErrLocked) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(retry):
		}
	}
}

func tryLockFile(path string) (*fileutil.LockedFile, error) {
	return fileutil.TryLockFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
}

// runGo returns what the go command prints to standard output; its messages are
// part of the error.
func runGo(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = append(os.Environ(), env...)
	// An interrupt lets the go command remove its work directory.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return "", fmt.Errorf("go %s in %s: %w\n%s", args[0], dir, err, stderr.String())
	}
	return stdout.String(), nil
}
