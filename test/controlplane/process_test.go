// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is a timeout that no step of these tests reaches, even on a busy machine.
const patience = 2 * time.Minute

// shell returns a command that runs a script.
func shell(t *testing.T, script string) command {
	return command{
		name:    "child",
		binary:  "/bin/sh",
		args:    []string{"-c", script},
		logFile: filepath.Join(t.TempDir(), "logs", "child.log"),
	}
}

func startShell(t *testing.T, c command) *Process {
	t.Helper()
	p, err := startProcess(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(p.Stop)
	return p
}

// waitForLine waits until the process's log contains the line.
func waitForLine(t *testing.T, p *Process, line string) {
	t.Helper()
	require.Eventually(t, func() bool {
		content, err := os.ReadFile(p.LogFile())
		return err == nil && strings.Contains(string(content), line+"\n")
	}, patience, 5*time.Millisecond, "no line %q", line)
}

func TestProcessEndsByItself(t *testing.T) {
	for name, test := range map[string]struct {
		script, want string
	}{
		"failure": {script: "echo out; echo err >&2; exit 3", want: "child ended by itself: exit status 3\nlast lines of LOG:\nout\nerr"},
		"success": {script: "echo bye", want: "child ended by itself: exit status 0\nlast lines of LOG:\nbye"},
		"signal":  {script: "kill -9 $$", want: "child ended by itself: signal: killed\nlast lines of LOG:\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := startShell(t, shell(t, test.script))
			<-p.Done()
			require.EqualError(t, p.Err(), strings.ReplaceAll(test.want, "LOG", p.LogFile()))
			p.Stop()
			require.Error(t, p.Err(), "stopping it later does not hide how it ended")
		})
	}
}

func TestProcessStop(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		grace  time.Duration
		log    string
	}{
		"asked to end":         {script: `trap 'echo bye; exit 0' TERM; echo up; while :; do :; done`, grace: time.Minute, log: "up\nbye\n"},
		"by force at once":     {script: `trap 'echo bye; exit 0' TERM; echo up; while :; do :; done`, log: "up\n"},
		"by force after grace": {script: `trap '' TERM; echo up; while :; do :; done`, grace: 50 * time.Millisecond, log: "up\n"},
	} {
		t.Run(name, func(t *testing.T) {
			c := shell(t, test.script)
			c.grace = test.grace
			p := startShell(t, c)
			waitForLine(t, p, "up")
			require.NoError(t, p.Err())
			p.Stop()
			p.Stop()
			require.NoError(t, p.Err())
			require.ErrorIs(t, syscall.Kill(p.PID(), 0), syscall.ESRCH)
			content, err := os.ReadFile(p.LogFile())
			require.NoError(t, err)
			require.Equal(t, test.log, string(content))
		})
	}
}

func TestProcessStopReachesDescendants(t *testing.T) {
	p := startShell(t, shell(t, "sleep 1000 & echo up; wait"))
	waitForLine(t, p, "up")
	p.Stop()
	// The orphan is dead. But until init reaps it, its process ID exists.
	require.Eventually(t, func() bool { return errors.Is(syscall.Kill(-p.PID(), 0), syscall.ESRCH) },
		patience, 5*time.Millisecond)
}

func TestStartProcessErrors(t *testing.T) {
	c := shell(t, "")
	c.binary = "/no/such/binary"
	_, err := startProcess(t.Context(), c)
	require.ErrorContains(t, err, "start child: fork/exec /no/such/binary: no such file")

	c = shell(t, "")
	c.logFile = "/dev/null/child.log"
	_, err = startProcess(t.Context(), c)
	require.ErrorContains(t, err, "start child: mkdir /dev/null: not a directory")
}

// parentEnv makes the test binary act as a parent: it starts a child that does not end, prints the child's process ID, and
// waits until it is killed.
const parentEnv = "CELSET_TEST_PARENT_LOG"

func TestMain(m *testing.M) {
	if log := os.Getenv(parentEnv); log != "" {
		p, err := startProcess(context.Background(), command{name: "child", binary: "/bin/sleep", args: []string{"1000"}, logFile: log})
		if err != nil {
			panic(err)
		}
		fmt.Println(p.PID())
		select {}
	}
	os.Exit(m.Run())
}

func TestChildDiesWithParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs the kernel's parent death signal")
	}
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"="+filepath.Join(t.TempDir(), "child.log"))
	stdout, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	var child int
	_, err = fmt.Fscan(stdout, &child)
	require.NoError(t, err)
	// Go ends idle threads after a while. The child must not die with such a thread.
	time.Sleep(200 * time.Millisecond)
	require.NoError(t, syscall.Kill(child, 0))

	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	require.Eventually(t, func() bool { return gone(child) }, patience, 5*time.Millisecond)
}

// gone reports whether a process has ended. A zombie counts as ended, because init may reap an orphan late.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestWaitReady(t *testing.T) {
	notYet := errors.New("not yet")
	never := func(context.Context) error { return notYet }

	t.Run("ready at the third probe", func(t *testing.T) {
		p := startShell(t, shell(t, "sleep 1000"))
		probes := 0
		require.NoError(t, p.waitReady(t.Context(), time.Minute, func(context.Context) error {
			if probes++; probes < 3 {
				return notYet
			}
			return nil
		}))
		require.Equal(t, 3, probes)
	})
	t.Run("ends before", func(t *testing.T) {
		p := startShell(t, shell(t, "echo reason; exit 4"))
		err := p.waitReady(t.Context(), time.Hour, never)
		require.ErrorContains(t, err, "not ready yet: child ended by itself: exit status 4")
		require.ErrorContains(t, err, "reason")
	})
	t.Run("ended while another answers", func(t *testing.T) {
		p := startShell(t, shell(t, "exit 4"))
		<-p.Done()
		err := p.waitReady(t.Context(), time.Hour, func(context.Context) error { return nil })
		require.ErrorContains(t, err, "exit status 4")
	})
	t.Run("is stopped before", func(t *testing.T) {
		p := startShell(t, shell(t, "sleep 1000"))
		p.Stop()
		require.EqualError(t, p.waitReady(t.Context(), time.Hour, never), "child was stopped before it was ready")
	})
	t.Run("timeout", func(t *testing.T) {
		p := startShell(t, shell(t, "echo busy; exec sleep 1000"))
		waitForLine(t, p, "busy")
		err := p.waitReady(t.Context(), 10*time.Millisecond, never)
		require.ErrorIs(t, err, notYet)
		require.EqualError(t, err, "child did not get ready: timeout of 10ms; last answer: not yet\nlast lines of "+p.LogFile()+":\nbusy")
	})
	t.Run("context", func(t *testing.T) {
		p := startShell(t, shell(t, "sleep 1000"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := p.waitReady(ctx, time.Hour, never)
		require.ErrorIs(t, err, context.Canceled)
		require.EqualError(t, err, "child is not ready yet: context canceled")
	})
}

func TestProcessGet(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.Error(w, "sorry", http.StatusNotFound)
			return
		}
		fmt.Fprint(w, "answer")
	}))
	defer server.Close()
	p := &Process{command: command{name: "child", endpoint: server.URL, client: server.Client()}}

	body, err := p.Get(t.Context(), "/metrics")
	require.NoError(t, err)
	require.Equal(t, "answer", string(body))
	_, err = p.Get(t.Context(), "/other")
	require.ErrorContains(t, err, "child: GET /other: 404 Not Found: sorry")
	server.Close()
	_, err = p.Get(t.Context(), "/metrics")
	require.ErrorContains(t, err, "connection refused")
}

func TestLastLines(t *testing.T) {
	long := strings.Repeat("x", failureBytes)
	for name, test := range map[string]struct{ content, want string }{
		"empty":            {},
		"fewer":            {content: "1\n2\n", want: "1\n2"},
		"more":             {content: "1\n2\n3\n4\n", want: "2\n3\n4"},
		"unfinished line":  {content: "1\n2\n3\n4", want: "2\n3\n4"},
		"very long lines":  {content: "1\n" + long + "\n2\n", want: long[3:] + "\n2"},
		"trailing newline": {content: "1\n\n\n", want: "1"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			require.NoError(t, os.WriteFile(path, []byte(test.content), 0o600))
			got, err := lastLines(path, 3)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
	_, err := lastLines("/no/such/file", 3)
	require.Error(t, err)
}

// beside returns a control plane without components. Programs can still run beside it.
func beside(t *testing.T) *ControlPlane {
	t.Helper()
	cp, err := prepare(t.Context(), Options{DataDir: t.TempDir(), Prebuilt: true})
	require.NoError(t, err)
	t.Cleanup(cp.Stop)
	return cp
}

func TestStartProgram(t *testing.T) {
	cp := beside(t)
	mark := filepath.Join(t.TempDir(), "mark")
	p, err := cp.StartProgram(t.Context(), Program{
		Name: "program", Binary: "/bin/sh", Args: []string{"-c", `echo "$WORD" > "$0"; sleep 60`, mark}, Env: []string{"WORD=ready"},
		Ready: func(context.Context, *Process) error {
			if content, err := os.ReadFile(mark); err != nil || string(content) != "ready\n" {
				return errors.New("not yet")
			}
			return nil
		},
	})
	require.NoError(t, err)
	require.FileExists(t, mark)
	require.Equal(t, []*Process{p}, cp.Processes())
	cp.Stop()
	require.NoError(t, p.Err())
	<-p.Done()
}

func TestStartProgramFails(t *testing.T) {
	cp := beside(t)
	_, err := cp.StartProgram(t.Context(), Program{Name: "absent", Binary: "/no/such/program"})
	require.ErrorContains(t, err, "start absent: fork/exec /no/such/program: no such file")
	_, err = cp.StartProgram(t.Context(), Program{Name: "ends", Binary: "/bin/sh", Args: []string{"-c", "echo why; exit 3"},
		Ready: func(context.Context, *Process) error { return errors.New("not ready") }})
	require.ErrorContains(t, err, "not ready yet: ends ended by itself: exit status 3")
	require.ErrorContains(t, err, "why")
}

// TestKubeletTLS checks that the client CA for kubelets authenticates the API server, and no other client.
func TestKubeletTLS(t *testing.T) {
	cp := beside(t)
	files := cp.KubeletTLS()
	pair, err := tls.LoadX509KeyPair(cp.pki.kubeletClientCert, cp.pki.kubeletClientKey)
	require.NoError(t, err)
	_, err = tls.LoadX509KeyPair(files.ServingCert, files.ServingKey)
	require.NoError(t, err)
	trusted := x509.NewCertPool()
	content, err := os.ReadFile(files.ClientCA)
	require.NoError(t, err)
	require.True(t, trusted.AppendCertsFromPEM(content))

	verify := func(pair tls.Certificate) error {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: trusted, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		return err
	}
	require.NoError(t, verify(pair))
	other := beside(t)
	stranger, err := tls.LoadX509KeyPair(other.pki.kubeletClientCert, other.pki.kubeletClientKey)
	require.NoError(t, err)
	require.Error(t, verify(stranger))
}
