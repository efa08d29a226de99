// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Unavailable returns nil if nodes can run on this machine, or the reason why they can't.
func Unavailable() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("a node that runs containers needs Linux, and this is %s", runtime.GOOS)
	}
	if os.Geteuid() != 0 {
		return errors.New("a node that runs containers needs root: it mounts file systems and makes cgroups")
	}
	return errors.Join(mayUnshare(), mayMakeCgroups())
}

// mayMakeCgroups returns an error if cgroups can't be created. They are often read-only in a container. It tries to create one.
func mayMakeCgroups() error {
	roots, err := hierarchies()
	if err != nil {
		return fmt.Errorf("a node that runs containers needs cgroups: %w", err)
	}
	for _, root := range roots {
		probe, err := os.MkdirTemp(root.point, "celset-probe-")
		if err != nil {
			return fmt.Errorf("a node that runs containers needs cgroups of its own: %w", err)
		}
		if err := os.Remove(probe); err != nil {
			return fmt.Errorf("a node that runs containers needs cgroups of its own: %s: %w", filepath.Base(probe), err)
		}
	}
	return nil
}
