// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import "syscall"

// childAttributes put a child into a process group of its own, so that a
// terminal's interrupt reaches only us and a signal of ours reaches all its
// descendants; and have the kernel kill it when the thread that starts it ends.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
