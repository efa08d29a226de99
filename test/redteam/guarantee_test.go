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

// The limits that the documentation guarantees.
const (
	mostDelay  = time.Second
	mostGrowth = 64 << 20
)

const (
	// batch is the number of shots that are fired together. It simulates the writes that mallory makes at one moment.
	batch = 10
	// crowdedBatch is the number of shots that are fired together if delays are not measured.
	crowdedBatch = 100
	// tries is the maximum number of times that a batch is repeated on a busy machine. The best result counts.
	tries = 4
	// mostFailures is the number of failures after which the test ends.
	mostFailures = 5
)

// A siege is a test of mallory's attacks. It holds the programs, alice's probes and the results.
type siege struct {
	*lab
	programs []*program
	probes   []*probe
	failures []string
}

// TestGuarantee measures alice's delays and the programs' memory under all cases. The package comment describes it.
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

// TestOthersAreServed fires the same shots in larger batches, and checks no delays. Afterwards all of alice's probes must
// succeed, and no program may have ended.
func TestOthersAreServed(t *testing.T) {
	if os.Getenv("CELSET_REDTEAM") != "" {
		t.Skip("TestGuarantee has the same, and measures it")
	}
	s, shots := newSiege(t)
	for next := range slices.Chunk(shots, crowdedBatch) {
		fire(t.Context(), next)
		for _, p := range s.probes {
			// Retry, because a single attempt may exceed a timeout of the API server on a busy machine.
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

// requireDefended checks the setup: the API server calls the webhook, and mallory may use the debug address.
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

// alone measures the durations of alice's probes without mallory.
func (s *siege) alone(t *testing.T) {
	t.Helper()
	// Don't count the first run, because it fills the caches.
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

// A result holds the effects of one batch.
type result struct {
	volley
	delays map[*probe]time.Duration // additional duration of a probe, compared with the duration without mallory
	// harmless are the delays when the same number of harmless shots is fired, if that was measured.
	harmless map[*probe]time.Duration
	growth   map[*program]int64
	// broken lists the programs that had to be restarted, each with the reason.
	broken []string
}

// delay returns the delay of a probe that the cases cause. It subtracts the delay that the same number of harmless shots
// causes.
func (r *result) delay(of *probe) time.Duration { return r.delays[of] - max(0, r.harmless[of]) }

// too returns descriptions of the limits that the result exceeds.
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

// attack fires a batch, several times if needed. If a limit is exceeded, it finds the shot that causes it.
func (s *siege) attack(t *testing.T, shots []shot) {
	t.Helper()
	r := s.best(t, shots)
	if len(r.too()) == 0 {
		return
	}
	if len(shots) > 1 {
		// Split the batch in halves. Usually one or two shots are the cause, so this is faster than firing each shot.
		before := len(s.failures)
		half := len(shots) / 2
		s.attack(t, shots[:half])
		s.attack(t, shots[half:])
		if len(s.failures) > before {
			return // the failures of the halves are more precise
		}
		// Neither half exceeds a limit. Only the whole batch does, or the machine was slow for a while. So fire the whole batch
		// again.
		if r = s.best(t, shots); len(r.too()) == 0 {
			return
		}
	}
	s.failures = append(s.failures, names(shots)+": "+strings.Join(r.too(), "; "))
}

// best fires a batch until no limit is exceeded, at most tries times. It returns the best result.
func (s *siege) best(t *testing.T, shots []shot) *result {
	t.Helper()
	var r *result
	for range tries {
		r = s.try(t, shots)
		if len(r.too()) == 0 || len(r.broken) > 0 {
			break
		}
		// Perhaps the delay is not due to the cases: harmless objects take time, too, mostly in the API server, and the machine
		// may be slow. So fire the same number of harmless shots, for comparison.
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

// try fires a batch while alice's probes run, and deletes the batch's objects.
func (s *siege) try(t *testing.T, shots []shot) *result {
	t.Helper()
	for _, p := range s.programs {
		p.measureAnew()
	}
	r := &result{delays: map[*probe]time.Duration{}, growth: map[*program]int64{}}
	worst, _ := during(t.Context(), s.probes, func() {
		r.volley = fire(t.Context(), shots)
		// Don't wait for work that programs still do. If a program hangs, the result already shows it.
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

// mend restarts programs that have ended, don't serve alice, or have exceeded a limit. Otherwise their remaining work or memory
// would be attributed to the next batch.
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
			// Run the probes once after a restart, so that the start does not delay the probes of the next batch.
			_, failures := during(t.Context(), s.probes, func() {})
			require.Empty(t, failures, "after %s was started again", p.name)
		}
	}
}

// unanswered returns a probe that was late in this result and that the program still does not serve. Otherwise it returns nil.
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

// isTooMuch reports whether the delay or the memory of the program exceeds the guarantee.
func (r *result) isTooMuch(of *program) bool {
	for p := range r.delays {
		if p.program == of && r.delay(p) > mostDelay {
			return true
		}
	}
	return r.growth[of] > mostGrowth+of.caches
}

// note records a result if it is the worst so far.
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

// table formats the worst results of each program.
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
