// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package controlplane

import (
	"errors"
	"syscall"
)

// childAttributes put a child into its own process group. A terminal's interrupt then reaches only this process, and this
// process can send a signal to all descendants of the child.
func childAttributes(command) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

func enterNamespaces(*Process) error {
	return errors.New("only Linux has namespaces")
}

// onFirstThread reports whether the calling thread is the first thread of the process. Only systems with namespaces per thread
// need the right answer.
func onFirstThread() bool { return false }
