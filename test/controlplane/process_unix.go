// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package controlplane

import (
	"errors"
	"syscall"
)

// childAttributes put a child into its own process group, so that a terminal's interrupt reaches only this process and its
// signals reach all descendants of the child.
func childAttributes(command) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

func enterNamespaces(*Process) error {
	return errors.New("only Linux has namespaces")
}

// onFirstThread matters only where threads have namespaces.
func onFirstThread() bool { return false }
