// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"syscall"
)

// RestartEtcd kills etcd, calls between if it is not nil, and starts etcd again with its stored data. It returns when etcd is
// ready. Acknowledged writes survive, because they are in the operating system's page cache.
func (cp *ControlPlane) RestartEtcd(ctx context.Context, between func()) error {
	return cp.restart(ctx, cp.etcdCommand(), etcdProbe, between)
}

// RestartAPIServer kills kube-apiserver, calls between if it is not nil, and starts kube-apiserver again. It returns when
// kube-apiserver is ready.
func (cp *ControlPlane) RestartAPIServer(ctx context.Context, between func()) error {
	return cp.restart(ctx, cp.apiServerCommand(), cp.apiServerProbe, between)
}

func (cp *ControlPlane) restart(ctx context.Context, c command, probe probeOf, between func()) error {
	running := cp.Running(c.name)
	if running == nil {
		return fmt.Errorf("restart %s: it does not run", c.name)
	}
	running.Kill()
	if between != nil {
		between()
	}
	return cp.supervisor.start(ctx, c, probe)
}

// Running returns the running process with the name, or nil.
func (cp *ControlPlane) Running(name string) *Process {
	for _, p := range cp.Processes() {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

// Pause stops the process and its descendants by SIGSTOP until Continue is called. To other programs the process appears to
// hang. A paused process can be ended by Stop.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Continue lets a paused process run again.
func (p *Process) Continue() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(signal syscall.Signal) error {
	if isClosed(p.done) {
		return fmt.Errorf("%s has ended", p.command.name)
	}
	return syscall.Kill(-p.cmd.Process.Pid, signal)
}
