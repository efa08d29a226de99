// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// A command describes how to run one component.
type command struct {
	name     string
	binary   string
	args     []string
	env      []string // "NAME=value", added to this process's environment
	logFile  string
	endpoint string       // URL of its HTTP server, without path
	client   *http.Client // client for requests to endpoint, trusts its certificate

	// grace is the time between SIGTERM and SIGKILL. Zero: SIGKILL at once.
	grace time.Duration

	isolated bool     // in a mount and a PID namespace of its own
	beside   *Process // an isolated process whose namespaces this one joins
}

// A Process is a component that runs or has run as a child process. Its methods may be called concurrently.
type Process struct {
	command command
	cmd     *exec.Cmd
	stop    context.CancelFunc
	stopped context.Context // ended by calling stop, to end the child
	killed  atomic.Bool     // set by Kill
	done    chan struct{}   // closed when the child has ended
	err     error           // reason if the child ended by itself; read it after done is closed
}

// startProcess starts a child that lives until Stop or Kill, or until it ends by itself.
func startProcess(ctx context.Context, c command) (*Process, error) {
	if err := os.MkdirAll(filepath.Dir(c.logFile), 0o755); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	log, err := os.Create(c.logFile)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	defer log.Close() // the child has its own file descriptor

	// The end of ctx must not stop the child directly, because the supervisor stops processes in an order.
	stopped, stop := context.WithCancel(context.WithoutCancel(ctx))
	p := &Process{command: c, stop: stop, stopped: stopped, done: make(chan struct{})}
	p.cmd = exec.CommandContext(stopped, c.binary, c.args...)
	p.cmd.Env = append(os.Environ(), c.env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = childAttributes(c)
	p.cmd.Cancel = p.signalStop
	p.cmd.WaitDelay = c.grace

	if err := p.run(); err != nil {
		stop()
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	return p, nil
}

// run starts the child and returns. A goroutine waits for the end of the child, and is locked to the thread that created the
// child. The lock is needed because the kernel kills a child when the thread that created it ends, and Go ends idle threads.
func (p *Process) run() error {
	started := make(chan error, 1)
	onThreadOfItsOwn(func() {
		var err error
		if p.command.beside != nil {
			// Don't unlock the thread, which is now in other namespaces. It ends with this goroutine, so no other goroutine gets it.
			err = enterNamespaces(p.command.beside)
		} else {
			defer runtime.UnlockOSThread()
		}
		if err == nil {
			err = p.cmd.Start()
		}
		started <- err
		if err == nil {
			p.finish(p.cmd.Wait())
		}
	})
	return <-started
}

// onThreadOfItsOwn runs f in a goroutine that is locked to a thread other than the first one of the process. The first thread
// is unsuitable because it ends only with the process, and because /proc shows its namespaces as the namespaces of the process.
func onThreadOfItsOwn(f func()) {
	go func() {
		runtime.LockOSThread()
		if !onFirstThread() {
			f()
			return
		}
		defer runtime.UnlockOSThread()
		elsewhere := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(elsewhere)
			f()
		}()
		<-elsewhere
	}()
}

func (p *Process) finish(exit error) {
	asked := p.stopped.Err() != nil || p.killed.Load()
	p.stop() // releases the context
	if !asked {
		if exit == nil {
			exit = errors.New("exit status 0")
		}
		p.err = p.failure("ended by itself", exit)
	}
	close(p.done)
}

// signalStop sends SIGTERM to the child's process group, or SIGKILL if the grace is zero. If the child still runs after the
// grace, package exec kills it.
func (p *Process) signalStop() error {
	signal := syscall.SIGTERM
	if p.command.grace == 0 {
		signal = syscall.SIGKILL
	}
	err := syscall.Kill(-p.cmd.Process.Pid, signal)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// Stop ends the process and returns when it has ended. Stop does nothing if the process has already ended.
func (p *Process) Stop() {
	p.stop()
	<-p.done
}

// Kill ends the process by SIGKILL, regardless of its grace, and returns when it has ended. The end then counts as requested,
// not as a failure.
func (p *Process) Kill() {
	p.killed.Store(true)
	_ = p.cmd.Process.Kill() // an error means that the process has ended already
	<-p.done
}

// Name returns the name of the component, unique among running components.
func (p *Process) Name() string { return p.command.name }

// PID returns the process id, which is also the id of its process group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// LogFile returns the path of the file with the output of the process.
func (p *Process) LogFile() string { return p.command.logFile }

// Endpoint returns the URL of the process's HTTP server, without a path.
func (p *Process) Endpoint() string { return p.command.endpoint }

// Done returns a channel that is closed when the process has ended for any reason.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns nil while the process runs, and after it was stopped. If the process ended by itself, Err returns its exit status
// and the last lines of its log.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Get sends a GET request for a path ("/metrics", "/healthz") to the process's HTTP server as the administrator, and returns
// the body. Any status other than 200 is an error.
func (p *Process) Get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.command.endpoint+path, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.command.name, err)
	}
	response, err := p.command.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.command.name, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: GET %s: %w", p.command.name, path, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: GET %s: %s: %s", p.command.name, path, response.Status, body)
	}
	return body, nil
}
