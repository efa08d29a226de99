// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes put a child into its own process group, so that a terminal's interrupt reaches only this process and its
// signals reach all descendants of the child. The kernel kills the child when the thread that started it ends.
//
// A child beside an isolated process ends with that process instead. Such a child does not see its parent, which is in another
// PID namespace, so package syscall would conclude that the parent has died.
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

// enterNamespaces puts future children of the calling thread into the namespaces of an isolated process. The thread must not be
// used for anything else.
func enterNamespaces(beside *Process) error {
	// A thread that shares its working directory with others can't change its mounts.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("enter the namespaces of %s: %w", beside.Name(), err)
	}
	// All files are opened first: after entering a namespace, /proc is another.
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

// onFirstThread reports whether the calling thread is the first thread of the process.
func onFirstThread() bool { return unix.Gettid() == os.Getpid() }
