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
	// childVariable makes the test binary run as the process that tries cases.
	childVariable = "CELSET_REDTEAM_CHILD"
	// waitVariable is the maximal processor time of a case before it is killed.
	waitVariable = "CELSET_REDTEAM_WAIT"
	defaultWait  = 2 * time.Minute
	// namesVariable selects the cases whose names contain a text, and prints all outcomes.
	namesVariable = "CELSET_REDTEAM"

	// childMemory limits the memory map of the process. Without a limit the machine would die instead.
	childMemory = 3 << 30

	// Others may wait for at most a second. In this time fit a compilation, an evaluation that is interrupted after evaluationTime,
	// and the garbage collection. Except at night, only the cost ends an evaluation.
	evaluationTime = 250 * time.Millisecond
	mostTime       = 750 * time.Millisecond
	mostMemory     = 64 << 20
	mostCost       = cel.DefaultCostLimit

	// tries is the number of tries on a busy machine; the best one counts.
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

// A trial is one case at one place.
type trial struct {
	Name  string
	Where Where
}

// An outcome is the result of a trial.
type outcome struct {
	trial
	// Compiled and Evaluated are processor times.
	Compiled, Evaluated time.Duration
	// Memory is the peak growth of the process in bytes.
	Memory int64
	Cost   uint64
	Answer string
	// Died describes the end of the process, if it has ended.
	Died string
}

func (o *outcome) took() time.Duration { return o.Compiled + o.Evaluated }

// bad judges time and memory only at night, when nothing else runs. An excessive cost is detected before it is spent, or a few
// calls later.
func (o *outcome) bad() bool {
	return o.Died != "" || o.Cost > mostCost && !strings.HasPrefix(o.Answer, string(cel.ReasonCostLimit)) || cases.Nightly() && (o.took() > mostTime || o.Memory > mostMemory)
}

// TestExpressions tries all expressions on the packages that evaluate them, in a process that may die. It compiles them and
// evaluates them once with a context that ends. It limits the cost in each run, and time and memory at night.
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

// A process is a child that tries cases. It is replaced when it dies.
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
			// Use processor time, because the machine may be busy. A process that sleeps is ended, too.
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
	for range p.out { // until the pipe is closed
	}
	_ = p.command.Wait()
	p.errors.Close()
	p.command = nil
}
