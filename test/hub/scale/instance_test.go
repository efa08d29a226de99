// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bytes"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/testing/env"
)

const program = "celset-placement"

// build returns the path of the program.
func build(t testing.TB) string {
	t.Helper()
	return env.Program(t, program)
}

// instance is a process that runs the program.
type instance struct {
	command *exec.Cmd
	output  *bytes.Buffer
	// done is closed when the process has ended, and then output may be read.
	done chan struct{}
	kill func()
}

// start runs the program until it is killed or the test ends.
func start(t testing.TB, binary, kubeconfig string, arguments ...string) *instance {
	t.Helper()
	i := &instance{output: &bytes.Buffer{}, done: make(chan struct{})}
	arguments = append([]string{"--kubeconfig=" + kubeconfig, "--health-probe-bind-address=0", "--metrics-bind-address=0"}, arguments...)
	i.command = exec.Command(binary, arguments...)
	i.command.Stdout, i.command.Stderr = i.output, i.output
	require.NoError(t, i.command.Start())
	go func() {
		defer close(i.done)
		_ = i.command.Wait()
	}()
	i.kill = sync.OnceFunc(func() {
		_ = i.command.Process.Kill()
		<-i.done
	})
	t.Cleanup(i.kill)
	return i
}

// running fails the test if the process has ended by itself.
func (i *instance) running(t testing.TB) {
	t.Helper()
	select {
	case <-i.done:
		t.Fatalf("%s ended by itself: %s\n%s", program, i.command.ProcessState, i.output)
	default:
	}
}
