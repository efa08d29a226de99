// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tool builds programs of hack/tools with make, for tests that run them.
//
//	helm, err := tool.Build("helm")
package tool

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/celset/celset/test/controlplane"
)

// Build runs "make bin/NAME", and returns the path of the binary. It is fast if the binary is up to date.
func Build(name string) (string, error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return "", err
	}
	if output, err := Make("bin/" + name); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, output)
	}
	return filepath.Join(root, "bin", name), nil
}

// Make runs make in the root of the module, and returns its output.
func Make(args ...string) (string, error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return "", err
	}
	command := exec.Command("make", append([]string{"-s"}, args...)...)
	command.Dir = root
	// The tests may run in a make themselves. Remove its variables from the environment.
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "MAKE") || strings.HasPrefix(variable, "MFLAGS=")
	})
	output, err := command.CombinedOutput()
	return string(output), err
}
