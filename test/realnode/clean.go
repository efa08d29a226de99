// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/celset/celset/test/controlplane"
)

// hostDirs are directories to which the kubelet and containerd write regardless of their configuration. The node mounts its own
// directories over them. On the host they are only created if they are missing.
var hostDirs = []string{"/var/lib/kubelet", "/var/log/containers", "/run/containerd"}

// cleanPatience is the limit for the time that the kernel takes to remove the processes and mounts of a killed node.
const cleanPatience = 10 * time.Second

// clean kills the processes of the node in dir, and removes its cgroups. It keeps the files. It returns an error if processes,
// mounts or cgroups are left.
func clean(dir string) error {
	deadline := time.Now().Add(cleanPatience)
	for {
		err := cleanOnce(dir)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(pollPeriod)
	}
}

func cleanOnce(dir string) error {
	cgroups, err := cgroupsNamed(cgroupName(dir))
	if err != nil {
		return err
	}
	pids, err := processesIn(cgroups)
	if err != nil {
		return err
	}
	inits, err := initsOf(dir)
	if err != nil {
		return err
	}
	for _, pid := range append(pids, inits...) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("kill process %d of the node: %w", pid, err)
		}
	}
	for _, cgroup := range slices.Backward(cgroups) {
		if err := syscall.Rmdir(cgroup); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("remove cgroup %s: %w", cgroup, err)
		}
	}
	left, err := Leftovers(dir)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("the node in %s left behind:\n%s", dir, strings.Join(left, "\n"))
	}
	return nil
}

// initsOf returns the process IDs of nodeinit processes with that directory. Each is the first process of a node.
func initsOf(dir string) ([]int, error) {
	pids, err := processesMentioning(dir)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(pids, func(pid int) bool {
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		// If the program was built again since the process started, its name ends with " (deleted)".
		return err != nil || strings.TrimSuffix(filepath.Base(program), " (deleted)") != controlplane.NodeInit
	}), nil
}
