// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package controlplane

import "syscall"

// childAttributes put a child into a process group of its own, so that a
// terminal's interrupt reaches only us and a signal of ours reaches all its
// descendants.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
