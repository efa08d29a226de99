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
	"strconv"
	"strings"
	"syscall"
)

// Leftovers lists what a node with that directory has left: processes of the node, other processes with the directory in their
// arguments, mounts below the directory in any mount namespace, and cgroups. Files don't count. After a node is stopped, the
// result should be empty.
func Leftovers(dir string) ([]string, error) {
	cgroups, err := cgroupsNamed(cgroupName(dir))
	if err != nil {
		return nil, err
	}
	pids, err := processesIn(cgroups)
	if err != nil {
		return nil, err
	}
	told, err := processesMentioning(dir)
	if err != nil {
		return nil, err
	}
	pids = append(pids, told...)
	slices.Sort(pids)
	var found []string
	for _, pid := range slices.Compact(pids) {
		found = append(found, fmt.Sprintf("process %d: %s", pid, strings.Join(commandLine(pid), " ")))
	}
	mounts, err := mountsBelow(dir)
	if err != nil {
		return nil, err
	}
	found = append(found, mounts...)
	for _, cgroup := range cgroups {
		if filepath.Base(cgroup) == cgroupName(dir) { // cgroups inside are removed together with it
			found = append(found, "cgroup "+cgroup)
		}
	}
	return found, nil
}

// processesMentioning returns the IDs of all other processes that have the directory, or a path below it, in an argument.
func processesMentioning(dir string) ([]int, error) {
	pids, err := allProcesses()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(pids, func(pid int) bool {
		return pid == os.Getpid() || !slices.ContainsFunc(commandLine(pid), func(arg string) bool {
			return strings.HasSuffix(arg, dir) || strings.Contains(arg, dir+"/")
		})
	}), nil
}

func allProcesses() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// commandLine returns the arguments of a process, or nil if the process has ended.
func commandLine(pid int) []string {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(content) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(content), "\x00"), "\x00")
}

// mountsBelow returns the mounts below dir in all mount namespaces. It reads the mounts of each process, because there is no
// list of namespaces.
func mountsBelow(dir string) ([]string, error) {
	pids, err := allProcesses()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{} // mount namespaces that were already read
	var found []string
	for _, pid := range pids {
		namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
		if err != nil || seen[namespace] {
			continue // the process has ended, or its namespace was already read
		}
		mounts, err := readMounts(fmt.Sprintf("/proc/%d/mountinfo", pid))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ESRCH) {
			continue // the process has ended
		}
		if err != nil {
			return nil, err
		}
		seen[namespace] = true
		for _, m := range mounts {
			if m.point == dir || strings.HasPrefix(m.point, dir+string(filepath.Separator)) {
				found = append(found, fmt.Sprintf("mount %s of process %d", m.point, pid))
			}
		}
	}
	return found, nil
}
