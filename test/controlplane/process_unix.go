// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package controlplane

import (
	"errors"
	"syscall"
)

// childAttributes put a child into a process group of its own, so that a
// terminal's interrupt reaches only us and a signal of ours reaches all its
// descendants.
func childAttributes(command) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

func enterNamespaces(*Process) error {
	return errors.New("only Linux has namespaces")
}

// onFirstThread matters only where threads have namespaces.
func onFirstThread() bool { return false }
