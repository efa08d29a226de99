// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package redteam

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// What the documentation promises.
const (
	mostDelay  = time.Second
	mostGrowth = 64 << 20
)

const (
	// batch is how many shots are fired together: what mallory writes at the same moment, and
	// a few that come right after it.
	batch = 10
	// crowdedBatch is how many are fired together where no delay is measured.
	crowdedBatch = 100
	// tries is for machines that are busy: the best one counts.
	tries = 4
	// mostFailures ends the test early: it has made its point.
	mostFailures = 5
)

// siege is a test in which mallory attacks.
type siege struct {
	*lab
	programs []*program
	probes   []*probe
	failures []string
}

// TestGuarantee is described in the comment of the package.
func TestGuarantee(t *testing.T) {
	mode := os.Getenv("CELSET_REDTEAM")
	if mode == "" {
		t.Skip("measures delays, so nothing else may run meanwhile: make test-guarantee, a part of make nightly")
	}
	s, shots := newSiege(t)
	size := batch
	switch mode {
	case "all":
	case "long":
		size = 1
	default:
		shots = slices.DeleteFunc(shots, func(s shot) bool { return !strings.Contains(s.name, mode) })
		require.NotEmpty(t, shots, "no case has %q in its name", mode)
	}
	s.alone(t)
	start := time.Now()
	for next := range slices.Chunk(shots, size) {
		s.attack(t, next)
		if mode != "long" && len(s.failures) >= mostFailures {
			t.Logf("enough is known; the rest is left out")
			break
		}
	}
	t.Logf("%d shots in %s, for which %d pods were evicted:\n%s", len(shots), time.Since(start).Round(time.Second), s.crowd.evicted, s.table())
	require.Empty(t, s.failures, "the guarantee does not hold:\n%s", strings.Join(s.failures, "\n"))
	if mode == "all" || mode == "long" {
		require.Positive(t, s.crowd.evicted)
	}
}

// TestOthersAreServed fires the same shots, many at a time, and no delay counts: afterwards alice
// gets everything that she asks for, and no program has ended.
func TestOthersAreServed(t *testing.T) {
	if os.Getenv("CELSET_REDTEAM") != "" {
		t.Skip("TestGuarantee has the same, and measures it")
	}
	s, shots := newSiege(t)
	for next := range slices.Chunk(shots, crowdedBatch) {
		fire(t.Context(), next)
		for _, p := range s.probes {
			// One try may meet a time-out of the API server's on a machine that is busy.
			var last error
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			err := poll(ctx, func() (bool, error) {
				p.n++
				last = p.once(ctx, p.n)
				return last == nil, nil
			})
			cancel()
			require.NoError(t, err, "%s, after %s: %v", p.name, names(next), last)
		}
		for _, p := range s.programs {
			how, ended := p.hasEnded()
			require.False(t, ended, "%s ended: %s, after %s", p.name, how, names(next))
		}
		require.NoError(t, undo(t.Context(), next))
	}
	require.Positive(t, s.crowd.evicted)
}

func newSiege(t *testing.T) (*siege, []shot) {
	t.Helper()
	l := startLab(t)
	scheduler, webhook := l.scheduler(), l.webhook(t)
	placements, debug := l.placement(t)
	scheduler.run(t)
	placements.run(t)
	s := &siege{lab: l, programs: []*program{scheduler, webhook, placements}, probes: []*probe{
		{name: "pod of the default profile", program: scheduler, once: l.schedule("plain", "default-scheduler", false)},
		{name: "pod with two devices side by side", program: scheduler, once: l.schedule("constrained", "celset-scheduler", true)},
		{name: "claim through the webhook", program: webhook, once: l.check},
		{name: "Placement through the webhook", program: webhook, once: l.checkPlacement},
		{name: "Placement to its decision", program: placements, once: l.place},
		{name: "Placement at the debug address", program: placements, once: l.debugger(debug, alice).preview},
	}}
	s.requireDefended(t, debug)
	return s, l.shots(l.debugger(debug, mallory))
}

// requireDefended makes sure that what is attacked is there: the webhook is asked, and
// mallory may ask the debug address.
func (s *siege) requireDefended(t *testing.T, debug string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return apierrors.IsInvalid(s.mallory.Create(t.Context(), claim(mallory, "wrong", 2, "1"), client.DryRunAll)) &&
			apierrors.IsInvalid(s.mallory.Create(t.Context(), placementOf(mallory, "wrong", "1"), client.DryRunAll))
	}, time.Minute, 50*time.Millisecond, "the webhook is not asked")
	require.NoError(t, s.mallory.Create(t.Context(), claim(unchecked, "wrong", 2, "1"), client.DryRunAll))
	body, err := yaml.Marshal(placementOf(mallory, "right", "true"))
	require.NoError(t, err)
	code, err := s.debugger(debug, mallory).ask(t.Context(), body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code)
}

// alone measures what alice does without mallory.
func (s *siege) alone(t *testing.T) {
	t.Helper()
	// Once to fill the caches.
	_, failures := during(t.Context(), s.probes, func() {})
	require.Empty(t, failures)
	for _, p := range s.programs {
		p.measureAnew()
	}
	worst, failures := during(t.Context(), s.probes, func() { time.Sleep(6 * time.Second) })
	require.Empty(t, failures)
	for p, took := range worst {
		p.alone = took
	}
	for _, p := range s.programs {
		p.resting = p.most()
	}
}

// result is what one batch did.
type result struct {
	volley
	delays map[*probe]time.Duration // beyond what it is without mallory
	// harmless are the delays by as many harmless shots, if that was measured.
	harmless map[*probe]time.Duration
	growth   map[*program]int64
	// broken says which programs had to be started again, and why.
	broken []string
}

// delay is how much later something is because of mallory: later than without mallory, and
// than with somebody harmless who writes as much.
func (r *result) delay(of *probe) time.Duration { return r.delays[of] - max(0, r.harmless[of]) }

// too says what is too much.
func (r *result) too() []string {
	text := slices.Clone(r.broken)
	for p := range r.delays {
		if delay := r.delay(p); delay > mostDelay {
			text = append(text, fmt.Sprintf("%s: %s later", p.name, delay.Round(10*time.Millisecond)))
		}
	}
	for p, growth := range r.growth {
		if growth > mostGrowth+p.caches {
			text = append(text, fmt.Sprintf("%s: %d MiB more", p.name, growth>>20))
		}
	}
	slices.Sort(text)
	return text
}

// attack tries a batch a few times if it must, and finds out which shot it was that did
// too much.
func (s *siege) attack(t *testing.T, shots []shot) {
	t.Helper()
	r := s.best(t, shots)
	if len(r.too()) == 0 {
		return
	}
	if len(shots) > 1 {
		// Halves find one or two in a batch sooner than one by one.
		before := len(s.failures)
		half := len(shots) / 2
		s.attack(t, shots[:half])
		s.attack(t, shots[half:])
		if len(s.failures) > before {
			return // the parts say it better
		}
		// Only together are they too much, or the machine was slow for longer.
		if r = s.best(t, shots); len(r.too()) == 0 {
			return
		}
	}
	s.failures = append(s.failures, names(shots)+": "+strings.Join(r.too(), "; "))
}

// best tries a batch until nothing is too much, or for as often as it may.
func (s *siege) best(t *testing.T, shots []shot) *result {
	t.Helper()
	var r *result
	for range tries {
		r = s.try(t, shots)
		if len(r.too()) == 0 || len(r.broken) > 0 {
			break
		}
		// As many harmless objects take their time, too, above all in the API server, and the
		// machine may be slow for a while.
		ordinary := s.try(t, harmless(shots))
		too := r.too()
		r.harmless = ordinary.delays
		if len(r.too()) == 0 {
			t.Logf("%s; as many harmless ones: up to %s later", strings.Join(too, "; "), ordinary.worst())
			break
		}
	}
	s.note(shots, r)
	t.Logf("%3d shots, %2d refused, %s, worst %s: %s", len(shots), r.refused, r.took.Round(time.Millisecond), r.worst(), names(shots))
	return r
}

func (r *result) worst() time.Duration {
	var worst time.Duration
	for p := range r.delays {
		worst = max(worst, r.delay(p))
	}
	return worst.Round(time.Millisecond)
}

// try fires a batch while alice goes about her business, and tidies up.
func (s *siege) try(t *testing.T, shots []shot) *result {
	t.Helper()
	for _, p := range s.programs {
		p.measureAnew()
	}
	r := &result{delays: map[*probe]time.Duration{}, growth: map[*program]int64{}}
	worst, _ := during(t.Context(), s.probes, func() {
		r.volley = fire(t.Context(), shots)
		// What is on its way is given up: a program that hangs is found out by now.
		for _, p := range s.programs {
			r.growth[p] = p.most() - p.resting
		}
	})
	for p, took := range worst {
		r.delays[p] = took - p.alone
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, undo(ctx, shots))
	s.mend(t, r)
	return r
}

// mend starts programs again that have ended, or that don't answer alice any more. What
// was too much may go on for a while, or leave memory in use; so as not to blame it on what
// comes next, the program starts again, too.
func (s *siege) mend(t *testing.T, r *result) {
	t.Helper()
	for _, p := range s.programs {
		how, broken := p.hasEnded()
		if broken {
			how = "ended: " + how
		} else if probe := s.unanswered(t, p, r); probe != nil {
			how, broken = "does not answer: "+probe.name, true
		}
		if broken {
			r.broken = append(r.broken, p.name+" "+how)
			p.ended = append(p.ended, how)
		}
		if broken || r.isTooMuch(p) {
			p.restart(t)
			// What comes next does not pay for the start.
			_, failures := during(t.Context(), s.probes, func() {})
			require.Empty(t, failures, "after %s was started again", p.name)
		}
	}
}

// unanswered finds out whether a program that was late still does not answer.
func (s *siege) unanswered(t *testing.T, of *program, r *result) *probe {
	t.Helper()
	for _, p := range s.probes {
		if p.program != of || r.delays[p] < patience/2 {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience/2)
		p.n++
		err := p.once(ctx, p.n)
		cancel()
		if err != nil {
			return p
		}
	}
	return nil
}

// isTooMuch tells whether a program was late, or has grown, by more than is promised.
func (r *result) isTooMuch(of *program) bool {
	for p := range r.delays {
		if p.program == of && r.delay(p) > mostDelay {
			return true
		}
	}
	return r.growth[of] > mostGrowth+of.caches
}

// note remembers the worst of all.
func (s *siege) note(shots []shot, r *result) {
	for p := range r.delays {
		if delay := r.delay(p); delay > p.worst {
			p.worst, p.worstWith = delay, names(shots)
		}
	}
	for p, growth := range r.growth {
		if growth > p.grown {
			p.grown, p.grownWith = growth, names(shots)
		}
	}
}

// table is what was measured, per program.
func (s *siege) table() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "alice\ttimes\tat most, alone\tlater, with mallory\twith")
	for _, p := range s.probes {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", p.name, p.times, p.alone.Round(time.Millisecond), p.worst.Round(time.Millisecond), p.worstWith)
	}
	fmt.Fprintln(w, "\nprogram\tended\tMiB at most, alone\tmore, with mallory\twith")
	for _, p := range s.programs {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\n", p.name, len(p.ended), p.resting>>20, p.grown>>20, p.grownWith)
	}
	_ = w.Flush()
	return text.String()
}
