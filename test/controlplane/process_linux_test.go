// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// needNamespaces skips a test if namespaces can't be created.
func needNamespaces(t *testing.T) {
	t.Helper()
	c := shell(t, "sleep 60")
	c.isolated = true
	p, err := startProcess(t.Context(), c)
	if err != nil {
		t.Skipf("no namespaces can be made: %v", err)
	}
	p.Stop()
}

func namespaces(t *testing.T, pid string) string {
	t.Helper()
	var names []string
	for _, kind := range []string{"mnt", "pid"} {
		name, err := os.Readlink("/proc/" + pid + "/ns/" + kind)
		require.NoError(t, err)
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func TestIsolatedProcess(t *testing.T) {
	needNamespaces(t)
	c := shell(t, "echo number $$; sleep 60")
	c.isolated = true
	first := startShell(t, c)
	waitForLine(t, first, "number 1")
	inside := namespaces(t, fmt.Sprint(first.PID()))
	require.NotContains(t, inside, namespaces(t, "self"))

	var beside []*Process
	for range 3 {
		c := shell(t, "trap '' TERM; echo up; while :; do sleep 60; done")
		c.beside = first
		p := startShell(t, c)
		waitForLine(t, p, "up")
		require.Equal(t, inside, namespaces(t, fmt.Sprint(p.PID())))
		beside = append(beside, p)
	}

	beside[0].Kill()
	require.NoError(t, beside[0].Err())
	require.NoError(t, syscall.Kill(beside[1].PID(), 0), "one goes, the others stay")
	first.Stop()
	for _, p := range beside[1:] {
		<-p.Done()
		require.ErrorContains(t, p.Err(), "signal: killed", "with the first process, its namespace goes")
	}

	c = shell(t, "true")
	c.beside = first
	_, err := startProcess(t.Context(), c)
	require.ErrorContains(t, err, "enter the namespaces of child: open /proc/")
}

// TestNamespacesOfThisProcess checks that all threads of this process are in its own namespaces after processes with other
// namespaces have ended.
func TestNamespacesOfThisProcess(t *testing.T) {
	needNamespaces(t)
	before := namespaces(t, "self")
	c := shell(t, "sleep 60")
	c.isolated = true
	first := startShell(t, c)
	for range 20 {
		c := shell(t, "exit 0")
		c.beside = first
		p := startShell(t, c)
		<-p.Done()
	}
	require.Equal(t, before, namespaces(t, "self"))
	// The goroutine closes the channel done before its thread ends, so wait.
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		threads, err := os.ReadDir("/proc/self/task")
		require.NoError(t, err)
		for _, thread := range threads {
			mounts, err := os.Readlink("/proc/self/task/" + thread.Name() + "/ns/mnt")
			if err == nil { // an error means that the thread has ended
				assert.Contains(t, before, mounts)
			}
		}
	}, patience, 10*time.Millisecond)
}
