// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"syscall"
)

// RestartEtcd ends etcd without a chance to tidy up, calls between if it is not nil, and
// starts it again with what it had stored. It returns when etcd is ready. What was
// acknowledged is still there: the page cache outlives the process.
func (cp *ControlPlane) RestartEtcd(ctx context.Context, between func()) error {
	return cp.restart(ctx, cp.etcdCommand(), etcdProbe, between)
}

// RestartAPIServer does the same with kube-apiserver.
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

// Running is the process of that name, nil if none runs.
func (cp *ControlPlane) Running(name string) *Process {
	for _, p := range cp.Processes() {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

// Pause has the kernel give the process and its descendants no time until Continue: to
// others it looks as if it hung, and to itself as if no time had passed. A paused process
// can be stopped.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Continue ends a pause.
func (p *Process) Continue() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(signal syscall.Signal) error {
	if isClosed(p.done) {
		return fmt.Errorf("%s has ended", p.command.name)
	}
	return syscall.Kill(-p.cmd.Process.Pid, signal)
}
