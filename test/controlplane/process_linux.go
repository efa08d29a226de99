// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes put a child into its own process group. A terminal's interrupt then reaches only this process, and this
// process can send a signal to all descendants of the child. The kernel kills the child when the thread that started it ends.
//
// A child in the namespaces of an isolated process has no such death signal; the kernel kills it when the isolated process
// ends. The signal would fail, because package syscall checks the parent's process ID, which is not visible in another PID
// namespace.
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

// enterNamespaces puts the future children of the calling thread into the namespaces of an isolated process. Afterwards, no
// other code may run on this thread.
func enterNamespaces(beside *Process) error {
	// setns for a mount namespace fails for a thread that shares its working directory with other threads.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("enter the namespaces of %s: %w", beside.Name(), err)
	}
	// Open all files before entering a namespace, because /proc shows another namespace's processes afterwards.
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
