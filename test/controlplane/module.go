// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// modulePath is the module whose go.mod pins the version of the Kubernetes binaries.
const modulePath = "github.com/celset/celset"

// BinDirEnv names the environment variable that overrides [BinDir].
const BinDirEnv = "CELSET_BIN"

// KubernetesEnv names the environment variable with the default of [Options.Kubernetes]. It allows running the tests on an
// older version of Kubernetes.
const KubernetesEnv = "CELSET_KUBERNETES"

// BinDir returns the directory of the binaries. It is $CELSET_BIN or, if that is not set, the directory bin in the root of the
// module that contains the working directory.
func BinDir() (string, error) {
	if dir := os.Getenv(BinDirEnv); dir != "" {
		return filepath.Abs(dir)
	}
	root, err := ModuleRoot()
	if err != nil {
		return "", fmt.Errorf("locate the binaries: %w; or set %s to their directory", err, BinDirEnv)
	}
	return filepath.Join(root, "bin"), nil
}

// ModuleRoot returns the root of this module's source tree: the nearest parent of the working directory whose go.mod names this
// module. The nested modules of build tools have other names.
func ModuleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module root: %w", err)
	}
	return moduleRootAbove(start)
}

func moduleRootAbove(start string) (string, error) {
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		switch {
		case err == nil && modfile.ModulePath(content) == modulePath:
			return dir, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("find the module root: %w", err)
		case dir == filepath.Dir(dir):
			return "", fmt.Errorf("no go.mod of %s in %s or above: run inside the source tree", modulePath, start)
		}
	}
}
