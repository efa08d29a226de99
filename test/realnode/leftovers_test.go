// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/test/controlplane"
)

func needLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("looks for processes in /proc")
	}
}

// needNode skips the test if a node can't run on this machine.
func needNode(t *testing.T) {
	t.Helper()
	if err := Unavailable(); err != nil {
		t.Skip(err)
	}
}

func TestReadMounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mountinfo")
	require.NoError(t, os.WriteFile(path, []byte(`22 27 0:21 / /proc rw,nosuid shared:5 - proc proc rw
30 23 0:26 / /sys/fs/cgroup/cpu rw,nosuid - cgroup cgroup rw,cpu
31 23 0:27 /a /with\040space\134 rw - tmpfs tmpfs rw
`), 0o600))
	mounts, err := readMounts(path)
	require.NoError(t, err)
	require.Equal(t, []mount{{"/proc", "proc"}, {"/sys/fs/cgroup/cpu", "cgroup"}, {`/with space\`, "tmpfs"}}, mounts)

	require.NoError(t, os.WriteFile(path, []byte("22 27 0:21 / /proc rw\n"), 0o600))
	_, err = readMounts(path)
	require.ErrorContains(t, err, "unknown format")
}

func TestCgroupName(t *testing.T) {
	require.Regexp(t, `^celset-[0-9a-f]{10}$`, cgroupName("/tmp/a"))
	require.Equal(t, cgroupName("/tmp/a"), cgroupName("/tmp/a"), "the next run has to find it")
	require.NotEqual(t, cgroupName("/tmp/a"), cgroupName("/tmp/b"))
}

// sleeper starts a process with the argument, and kills it at the end of the test. The process must have no children, because a
// forked child would have the same argument for a moment.
func sleeper(t *testing.T, argument string) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "echo up; read end", "sh", argument)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	_, err = cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the test's context kills the process before
	buffer := make([]byte, 3)
	_, err = out.Read(buffer)
	require.NoError(t, err)
	return cmd.Process.Pid
}

func TestProcessesTold(t *testing.T) {
	needLinux(t)
	dir := t.TempDir()
	want := []int{sleeper(t, dir), sleeper(t, "--config="+dir+"/x"), sleeper(t, "unix://"+dir)}
	sleeper(t, dir+"-2/x")
	sleeper(t, "else")
	got, err := processesMentioning(dir)
	require.NoError(t, err)
	require.ElementsMatch(t, want, got)

	left, err := Leftovers(dir)
	require.NoError(t, err)
	require.Len(t, left, 3)
	require.Contains(t, left, fmt.Sprintf("process %d: /bin/sh -c echo up; read end sh %s", want[0], dir))
	inits, err := initsOf(dir)
	require.NoError(t, err)
	require.Empty(t, inits, "a shell is not killed because it has been told the directory")
}

func TestClean(t *testing.T) {
	needNode(t)
	dir := t.TempDir()
	require.NoError(t, clean(dir), "nothing to do")

	name := cgroupName(dir)
	require.NoError(t, makeCgroups(name))
	require.NoError(t, makeCgroups(name), "they may exist")
	t.Cleanup(func() { _ = clean(dir) })
	roots, err := hierarchies()
	require.NoError(t, err)
	pid := sleeper(t, "a container")
	for _, root := range roots {
		pod := filepath.Join(root.point, name, "kubepods", "pod")
		require.NoError(t, os.MkdirAll(pod, 0o755))
		if root.fstype == "cgroup" {
			if controllers := filepath.Base(root.point); strings.Contains(controllers, "cpuset") {
				continue // a cpuset without processors can't contain a process
			}
		}
		require.NoError(t, os.WriteFile(filepath.Join(pod, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0))
	}
	left, err := Leftovers(dir)
	require.NoError(t, err)
	require.Contains(t, left, "cgroup "+filepath.Join(roots[0].point, name))
	require.Contains(t, strings.Join(left, "\n"), fmt.Sprintf("process %d: ", pid))

	require.NoError(t, clean(dir))
	left, err = Leftovers(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestNewNodeRejectsLongDir(t *testing.T) {
	needNode(t)
	_, err := newNode(&controlplane.ControlPlane{}, Options{Dir: "/tmp/" + strings.Repeat("x", 60)})
	require.ErrorContains(t, err, "has 65 characters")
}
