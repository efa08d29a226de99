// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"syscall"
)

// RestartEtcd kills etcd, calls between if it is not nil, and starts etcd again with its stored data. It returns when etcd is
// ready. Acknowledged writes survive, because the page cache outlives the process.
func (cp *ControlPlane) RestartEtcd(ctx context.Context, between func()) error {
	return cp.restart(ctx, cp.etcdCommand(), etcdProbe, between)
}

// RestartAPIServer restarts kube-apiserver in the same way.
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

// Running returns the running process of that name, or nil.
func (cp *ControlPlane) Running(name string) *Process {
	for _, p := range cp.Processes() {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

// Pause stops the process and its descendants by SIGSTOP until Continue. Others see a process that hangs; the process itself
// notices no pause. A paused process can be stopped.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Continue ends a pause.
func (p *Process) Continue() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(signal syscall.Signal) error {
	if isClosed(p.done) {
		return fmt.Errorf("%s has ended", p.command.name)
	}
	return syscall.Kill(-p.cmd.Process.Pid, signal)
}
