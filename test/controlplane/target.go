// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// target is a program that can be built, with its settings for `go build`.
type target struct {
	name   string // name of the binary in the binary directory
	pkg    string // import path, or path "./cmd/program" relative to the module's directory
	module string // the directory of the module to build in, from the module root
	stamp  string // linker flags that set version variables
	tags   string
	static bool
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
			if versions[t.module] == "" {
				if versions[t.module], err = kubernetesVersion(ctx, filepath.Join(root, t.module)); err != nil {
					return nil, err
				}
			}
			t.stamp = VersionStamp(versions[t.module])
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// targetOf returns the target for the name of a dependency or of a command in this repository. isKubernetes is set if the
// program gets the version of Kubernetes; celset-scheduler gets it, too.
func targetOf(root, name string) (t target, isKubernetes bool, err error) {
	if dep, ok := dependencies[name]; ok {
		return target{name: name, pkg: dep.pkg, module: dep.module, tags: dep.tags, static: dep.static}, dep.kubernetes, nil
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
	return target{name: name, pkg: "./cmd/" + name}, nil
}

// kubernetesVersion returns the version of Kubernetes in the module graph of dir. Servers built from this module have the same
// version.
func kubernetesVersion(ctx context.Context, dir string) (string, error) {
	out, err := runGo(ctx, dir, nil, "list", "-m", "-f", "{{.Version}}", kubernetesModule)
	if err != nil {
		return "", fmt.Errorf("find the version of %s: %w", kubernetesModule, err)
	}
	return strings.TrimSpace(out), nil
}

// VersionStamp returns linker flags that set the variables of a Kubernetes release build. Without them a server reports v0.0.0,
// and `kubectl version` can't compare.
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
