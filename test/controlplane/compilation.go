// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A compilation is one run of `go build`. It builds all targets that are in the same module and have the same flags.
type compilation []target

// compilations groups targets that one run of `go build` can build. It keeps the order of the targets.
func compilations(targets []target) []compilation {
	var all []compilation
	for _, t := range targets {
		i := slices.IndexFunc(all, func(c compilation) bool { return c[0].builtLike(t) })
		if i < 0 {
			all = append(all, compilation{t})
		} else if !slices.Contains(all[i], t) {
			all[i] = append(all[i], t)
		}
	}
	return all
}

func (t target) builtLike(other target) bool {
	return t.module == other.module && t.stamp == other.stamp && t.tags == other.tags && t.static == other.static
}

// names returns the names of the targets as part of a sentence: "etcd", "etcd and kwok", "etcd, kube-apiserver and kwok".
func (c compilation) names() string {
	var names []string
	for _, t := range c {
		names = append(names, t.name)
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// build runs `go build` with a work directory as output, and then publishes the binaries in binDir by renaming. The work
// directory keeps the last binaries, so that `go build` does not link an unchanged program again.
func (c compilation) build(ctx context.Context, root, binDir string) error {
	workDir := filepath.Join(binDir, ".build", c.workDir())
	if err := os.MkdirAll(workDir, 0o755); err != nil {
		return fmt.Errorf("build %s: %w", c.names(), err)
	}
	lock, err := lockFile(ctx, filepath.Join(workDir, ".lock"))
	if err != nil {
		return fmt.Errorf("build %s: wait for another build of it: %w", c.names(), err)
	}
	defer lock.Close()

	if _, err := runGo(ctx, filepath.Join(root, c[0].module), c.environment(), c.args(workDir)...); err != nil {
		return fmt.Errorf("build %s: %w", c.names(), err)
	}
	for _, t := range c {
		if err := publish(filepath.Join(workDir, t.executable()), filepath.Join(binDir, t.name)); err != nil {
			return fmt.Errorf("build %s: %w", t.name, err)
		}
	}
	return nil
}

// workDir returns the work directory below the build directory. Each module has its own work directory, because two modules can
// have programs of the same name.
func (c compilation) workDir() string {
	if c[0].static {
		return filepath.Join(c[0].module, "static")
	}
	return c[0].module
}

// withoutSymbols makes the linker leave out symbol tables, because writing them takes a third of the linking time. Panics still
// print stack traces.
const withoutSymbols = "-s -w"

// args returns the arguments of `go build`. The flags must be the same for any group of programs. `go build` records its flags
// in each program, and links the program again if they differ.
func (c compilation) args(workDir string) []string {
	// With several programs, go build always treats -o as a folder. With one program it does so only if -o ends with a separator.
	args := []string{"build", "-o", workDir + string(filepath.Separator), "-ldflags", strings.TrimSpace(withoutSymbols + " " + c[0].stamp)}
	if tags := c[0].tags; tags != "" {
		args = append(args, "-tags", tags)
	}
	for _, t := range c {
		args = append(args, t.pkg)
	}
	return args
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// executable returns the name that `go build` gives the program: the last element of its import path, or the element before if
// the last is a major version such as v3.
func (t target) executable() string {
	if dir, last := path.Split(t.pkg); majorVersion.MatchString(last) {
		return path.Base(dir)
	}
	return path.Base(t.pkg)
}

// compilerGOGC makes compilers collect garbage less often than by default, which saves a seventh of the processor time. This
// needs more memory, but each compiler process ends after seconds.
const compilerGOGC = "GOGC=400"

// environment returns the variables that the go command needs in addition to the environment of this process.
func (c compilation) environment() []string {
	var variables []string
	if os.Getenv("GOGC") == "" {
		variables = append(variables, compilerGOGC)
	}
	if c[0].static {
		variables = append(variables, "CGO_ENABLED=0")
	}
	return variables
}

// runGo runs the go command and returns its standard output. An error contains the command's messages.
func runGo(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	// If the go command is interrupted while it loads packages, it does not remove its work directory. So runGo creates that
	// directory, and removes it.
	work, err := os.MkdirTemp(os.Getenv("GOTMPDIR"), "celset-build-")
	if err != nil {
		return "", fmt.Errorf("go %s in %s: work directory: %w", args[0], dir, err)
	}
	defer os.RemoveAll(work)
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = append(os.Environ(), append(env, "GOTMPDIR="+work)...)
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
