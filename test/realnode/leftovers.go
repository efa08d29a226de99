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

// Leftovers lists the remains of a node with that directory, except files: its processes, other processes with the directory in
// their arguments, mounts below it in any mount namespace, and cgroups. A stopped node should have no remains.
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
		if filepath.Base(cgroup) == cgroupName(dir) { // descendants are included
			found = append(found, "cgroup "+cgroup)
		}
	}
	return found, nil
}

// processesMentioning returns all other processes with an argument that contains the directory or a path in it.
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

// commandLine returns nil if the process has ended.
func commandLine(pid int) []string {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(content) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(content), "\x00"), "\x00")
}

// mountsBelow checks the mounts of each process, because there is no other way to see all mount namespaces.
func mountsBelow(dir string) ([]string, error) {
	pids, err := allProcesses()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{} // namespaces
	var found []string
	for _, pid := range pids {
		namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
		if err != nil || seen[namespace] {
			continue // it has ended, or the namespace was seen
		}
		mounts, err := readMounts(fmt.Sprintf("/proc/%d/mountinfo", pid))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended
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
