// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes put a child into a process group of its own, so that a
// terminal's interrupt reaches only us and a signal of ours reaches all its
// descendants; and have the kernel kill it when the thread that starts it ends.
//
// One beside an isolated process ends with that process instead: the package
// syscall takes a child that does not see its parent, which is in another PID
// namespace, for one whose parent has died.
func childAttributes(c command) *syscall.SysProcAttr {
	switch {
	case c.beside != nil:
		return &syscall.SysProcAttr{Setpgid: true}
	case c.isolated:
		return &syscall.SysProcAttr{
			Setpgid: true, Pdeathsig: syscall.SIGKILL,
			Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		}
	default:
		return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	}
}

// enterNamespaces has what the calling thread starts from now on be in the
// namespaces of an isolated process. The thread must not be used for anything else.
func enterNamespaces(beside *Process) error {
	// A thread that shares its working directory with others can't change its mounts.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("enter the namespaces of %s: %w", beside.Name(), err)
	}
	// Opened before the first is entered, where /proc is another.
	files := map[string]*os.File{}
	for _, namespace := range []string{"mnt", "pid"} {
		file, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", beside.PID(), namespace))
		if err != nil {
			return fmt.Errorf("enter the namespaces of %s: %w", beside.Name(), err)
		}
		defer file.Close()
		files[namespace] = file
	}
	for namespace, file := range files {
		if err := unix.Setns(int(file.Fd()), 0); err != nil {
			return fmt.Errorf("enter the %s namespace of %s: %w", namespace, beside.Name(), err)
		}
	}
	return nil
}

// onFirstThread tells whether the calling thread is the one that the process started
// with.
func onFirstThread() bool { return unix.Gettid() == os.Getpid() }
