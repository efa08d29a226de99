// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tool builds programs of hack/tools for tests that run them.
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

	"github.com/celset/celset/internal/controlplane"
)

// Build has make build bin/name, as a user does, and returns its path. What is built already costs
// moments.
func Build(name string) (string, error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return "", err
	}
	command := exec.Command("make", "-s", "bin/"+name)
	command.Dir = root
	// Of a make that runs the tests it does not know.
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "MAKE") || strings.HasPrefix(variable, "MFLAGS=")
	})
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, output)
	}
	return filepath.Join(root, "bin", name), nil
}
