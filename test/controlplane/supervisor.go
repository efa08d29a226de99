// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// A supervisor starts and stops the processes of a control plane. It is safe for concurrent use.
type supervisor struct {
	progress     *progress
	logDir       string
	readyTimeout time.Duration
	// failed receives the error of the first component that ends by itself.
	failed chan error

	mutex   sync.Mutex
	stopped bool
	// processes are all started processes, in the order of their start. starts maps a component to its number of starts.
	processes []*Process
	starts    map[string]int
}

// A probeOf is a function that returns the readiness probe for a process.
type probeOf func(*Process) func(context.Context) error

func (v *supervisor) start(ctx context.Context, c command, probe probeOf) error {
	_, err := v.startOne(ctx, c, probe)
	return err
}

// startOne starts a component and waits until it is ready. If it does not become ready, startOne stops it again.
func (v *supervisor) startOne(ctx context.Context, c command, probe probeOf) (p *Process, err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, context.Cause(ctx))
	}
	err = v.progress.step("starting "+c.name, c.name+" ready", func() error {
		if p, err = v.launch(ctx, c); err != nil {
			return err
		}
		return p.waitReady(ctx, v.readyTimeout, probe(p))
	})
	switch {
	case err == nil:
		go v.watch(p)
		return p, nil
	case p != nil:
		p.Stop()
	}
	return nil, err
}

// launch starts a child, and records it so that stop ends it.
func (v *supervisor) launch(ctx context.Context, c command) (*Process, error) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.stopped {
		return nil, fmt.Errorf("start %s: the control plane is stopped", c.name)
	}
	for _, p := range v.processes {
		if p.Name() == c.name && !isClosed(p.Done()) {
			return nil, fmt.Errorf("start %s: one of that name runs already: stop it first or choose another name", c.name)
		}
	}
	c.logFile = v.nextLogFile(c.name)
	p, err := startProcess(ctx, c)
	if err != nil {
		return nil, err
	}
	v.processes = append(v.processes, p)
	return p, nil
}

// nextLogFile returns the log file for the next start of a component. The logs are numbered, so that a restart does not
// overwrite the log that explains it.
func (v *supervisor) nextLogFile(name string) string {
	v.starts[name]++
	if n := v.starts[name]; n > 1 {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	return filepath.Join(v.logDir, name+".log")
}

// watch waits for the end of a process. If the process ended by itself, and is the first to do so, watch stores its error for
// Wait. (If a process ends before it is ready, start returns the error instead.)
func (v *supervisor) watch(p *Process) {
	<-p.Done()
	if err := p.Err(); err != nil {
		select {
		case v.failed <- err:
		default:
		}
	}
}

// stop ends all processes, clients before servers. Afterwards no process can be started.
func (v *supervisor) stop() {
	v.mutex.Lock()
	v.stopped = true
	processes := slices.Clone(v.processes)
	v.mutex.Unlock()

	// Stop all clients of the API server concurrently, then the API server, and finally etcd.
	var clients sync.WaitGroup
	for _, p := range processes {
		if p.Name() != Etcd && p.Name() != KubeAPIServer {
			clients.Go(p.Stop)
		}
	}
	clients.Wait()
	for _, p := range slices.Backward(processes) {
		p.Stop()
	}
}

// running returns the processes that have not ended.
func (v *supervisor) running() []*Process {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	running := slices.Clone(v.processes)
	return slices.DeleteFunc(running, func(p *Process) bool { return isClosed(p.Done()) })
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
