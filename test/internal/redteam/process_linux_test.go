// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package redteam

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/internal/testing/cases"
)

const (
	// childVariable names an environment variable that makes the test binary run as the child process.
	childVariable = "CELSET_REDTEAM_CHILD"
	// waitVariable names an environment variable with the maximum processor time of a trial. A child that exceeds it is killed.
	waitVariable = "CELSET_REDTEAM_WAIT"
	defaultWait  = 2 * time.Minute
	// namesVariable names an environment variable with a text. Only cases whose names contain the text run, and all outcomes
	// are printed.
	namesVariable = "CELSET_REDTEAM"

	// childMemory is the limit for the address space of the child process. Without a limit, a case could crash the machine.
	childMemory = 3 << 30

	// A case may delay other users by at most a second. That must be enough for the compilation, for an evaluation that is
	// interrupted after evaluationTime, and for garbage collection. In "make test" no time is checked: only the cost limit ends
	// an evaluation.
	evaluationTime = 250 * time.Millisecond
	mostTime       = 750 * time.Millisecond
	mostMemory     = 64 << 20
	mostCost       = cel.DefaultCostLimit

	// tries is the number of times that a trial is repeated on a busy machine. The best result counts.
	tries = 3
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		limit := syscall.Rlimit{Cur: childMemory, Max: childMemory}
		if err := syscall.Setrlimit(syscall.RLIMIT_AS, &limit); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A trial is a case at one of its places.
type trial struct {
	Name  string
	Where Where
}

// An outcome is the result of a trial.
type outcome struct {
	trial
	// Compiled is the processor time of the compilation, Evaluated of the evaluation.
	Compiled, Evaluated time.Duration
	// Memory is the peak growth of the process in bytes.
	Memory int64
	Cost   uint64
	Answer string
	// Died says how the process ended, or is empty.
	Died string
}

func (o *outcome) took() time.Duration { return o.Compiled + o.Evaluated }

// bad reports whether the outcome exceeds a limit. Time and memory are checked only in "make nightly", when nothing else runs.
// The cost may exceed its limit by a few calls.
func (o *outcome) bad() bool {
	return o.Died != "" || o.Cost > mostCost && !strings.HasPrefix(o.Answer, string(cel.ReasonCostLimit)) || cases.Nightly() && (o.took() > mostTime || o.Memory > mostMemory)
}

// TestExpressions compiles and evaluates all expressions with the packages of the programs. The evaluation has a context with a
// deadline. It runs in a child process, because a case may crash it. The test always checks the cost, and checks time and
// memory in "make nightly".
func TestExpressions(t *testing.T) {
	wait := defaultWait
	if text := os.Getenv(waitVariable); text != "" {
		var err error
		wait, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	child := &process{wait: wait}
	defer child.stop()
	var outcomes, bad []outcome
	for _, c := range Cases() {
		for _, where := range []Where{Device, Cluster, Report, Search, Preference} {
			if !c.Is(where) || c.Text == "" || !strings.Contains(c.Name, os.Getenv(namesVariable)) {
				continue
			}
			best := child.try(t, trial{c.Name, where})
			for range tries - 1 {
				if !best.bad() || best.Died != "" {
					break
				}
				if next := child.try(t, trial{c.Name, where}); next.took() < best.took() {
					best = next
				}
			}
			outcomes = append(outcomes, best)
			if best.bad() {
				bad = append(bad, best)
				t.Logf("too much:\n%s", table([]outcome{best}))
			}
		}
	}
	require.NotEmpty(t, outcomes, "no case has %q in its name", os.Getenv(namesVariable))
	slices.SortStableFunc(outcomes, func(a, b outcome) int { return cmp.Compare(b.took(), a.took()) })
	t.Logf("%d expressions; those that take most:\n%s", len(outcomes), table(outcomes[:min(40, len(outcomes))]))
	if os.Getenv(namesVariable) != "" {
		t.Logf("all:\n%s", table(outcomes))
	}
	require.Empty(t, bad, "take more than %s, %d MiB or an evaluation of %d units of cost, or end the process:\n%s", mostTime, mostMemory>>20, mostCost, table(bad))
}

func table(outcomes []outcome) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "name\twhere\tcompiled\tevaluated\tMiB\tcost\tanswer")
	for _, o := range outcomes {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%s\n", o.Name, o.Where, o.Compiled.Round(time.Millisecond), o.Evaluated.Round(time.Millisecond),
			o.Memory>>20, o.Cost, cmp.Or(o.Died, o.Answer))
	}
	_ = w.Flush()
	return text.String()
}

// A process is a child process that runs trials. If it dies, the next trial starts another one.
type process struct {
	wait    time.Duration
	command *exec.Cmd
	in      io.WriteCloser
	out     chan outcome
	errors  *os.File
}

func (p *process) start(t *testing.T) {
	t.Helper()
	p.command = exec.CommandContext(t.Context(), os.Args[0])
	p.command.Env = append(os.Environ(), childVariable+"=1", "GOTRACEBACK=none", "GOMAXPROCS=2")
	var err error
	p.errors, err = os.CreateTemp(t.TempDir(), "stderr")
	require.NoError(t, err)
	p.command.Stderr = p.errors
	p.in, err = p.command.StdinPipe()
	require.NoError(t, err)
	pipe, err := p.command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.command.Start())
	out := make(chan outcome)
	p.out = out
	go func() {
		defer close(out)
		lines := bufio.NewScanner(pipe)
		for lines.Scan() {
			var o outcome
			if json.Unmarshal(lines.Bytes(), &o) == nil {
				out <- o
			}
		}
	}()
}

func (p *process) try(t *testing.T, which trial) outcome {
	t.Helper()
	if p.command == nil {
		p.start(t)
	}
	request, err := json.Marshal(which)
	require.NoError(t, err)
	if _, err := p.in.Write(append(request, '\n')); err != nil {
		return p.died(which, 0)
	}
	start, spent := time.Now(), processorTimeOf(p.command.Process.Pid)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case o, ok := <-p.out:
			if ok {
				return o
			}
			return p.died(which, time.Since(start))
		case <-look.C:
			// Measure processor time, because other processes may use the machine. A child that uses no processor time for too
			// long is killed, too.
			took := processorTimeOf(p.command.Process.Pid) - spent
			if took < p.wait && time.Since(start) < 10*p.wait {
				continue
			}
			memory := resident(p.command.Process.Pid)
			p.stop()
			return outcome{trial: which, Evaluated: took, Memory: memory, Died: "had not ended after " + p.wait.String()}
		}
	}
}

func (p *process) died(which trial, after time.Duration) outcome {
	p.stop()
	content, _ := os.ReadFile(p.errors.Name())
	said, _, _ := strings.Cut(string(content), "\n")
	return outcome{trial: which, Evaluated: after, Memory: childMemory, Died: "died: " + cmp.Or(said, "without a word")}
}

func (p *process) stop() {
	if p.command == nil {
		return
	}
	_ = p.command.Process.Kill()
	for range p.out { // until the child closes the pipe
	}
	_ = p.command.Wait()
	p.errors.Close()
	p.command = nil
}
