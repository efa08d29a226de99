// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// cgroupName returns the name of the cgroup that contains all cgroups of the node. It has the same name in each hierarchy.
func cgroupName(dir string) string {
	return "celset-" + digest([]byte(dir))[:10]
}

// A mount is a line of /proc/PID/mountinfo, see proc(5).
type mount struct {
	point  string
	fstype string
}

func readMounts(path string) ([]mount, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var mounts []mount
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		before, after, found := strings.Cut(lines.Text(), " - ")
		fields, types := strings.Fields(before), strings.Fields(after)
		if !found || len(fields) < 5 || len(types) < 1 {
			return nil, fmt.Errorf("%s: unknown format: %q", path, lines.Text())
		}
		mounts = append(mounts, mount{point: unescapeMount.Replace(fields[4]), fstype: types[0]})
	}
	return mounts, lines.Err()
}

// unescapeMount decodes the escape sequences that the kernel uses in mountinfo.
var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// hierarchies returns the mount points of the cgroup file systems. In version 1 there is one for each controller, in version 2
// a single one. Hybrid machines have both.
func hierarchies() ([]mount, error) {
	mounts, err := readMounts("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	mounts = slices.DeleteFunc(mounts, func(m mount) bool { return m.fstype != "cgroup" && m.fstype != "cgroup2" })
	if len(mounts) == 0 {
		return nil, errors.New("no cgroup file system is mounted")
	}
	return mounts, nil
}

// makeCgroups creates the cgroups that the kubelet expects to exist.
func makeCgroups(name string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := os.Mkdir(filepath.Join(root.point, name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if root.fstype == "cgroup2" {
			if err := delegate(root.point); err != nil {
				return err
			}
		}
	}
	return nil
}

// delegate turns on the controllers of a version 2 cgroup for its children.
func delegate(cgroup string) error {
	available, err := os.ReadFile(filepath.Join(cgroup, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(available)) {
		err := os.WriteFile(filepath.Join(cgroup, "cgroup.subtree_control"), []byte("+"+controller), 0)
		if err != nil {
			return fmt.Errorf("let the children of %s use the controller %s: %w", cgroup, controller, err)
		}
	}
	return nil
}

// cgroupsNamed returns the cgroups with this name in all hierarchies, and all cgroups inside them. Parents come before
// children.
func cgroupsNamed(name string) ([]string, error) {
	roots, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, root := range roots {
		err := filepath.WalkDir(filepath.Join(root.point, name), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil // the cgroup does not exist
			case err != nil:
				return err
			case entry.IsDir():
				found = append(found, path)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// processesIn returns the sorted IDs of the processes in the cgroups.
func processesIn(cgroups []string) ([]int, error) {
	var pids []int
	for _, cgroup := range cgroups {
		content, err := os.ReadFile(filepath.Join(cgroup, "cgroup.procs"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, line := range strings.Fields(string(content)) {
			pid, err := strconv.Atoi(line)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", cgroup, err)
			}
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}
