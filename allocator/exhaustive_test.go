// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
)

// The search is compared with the exhaustive one, its reference. A case is one
// answer: for the claims of a pod on a node, with an expression over their devices.
//
// Compiling an expression takes as long as evaluating it on some fifty sets, so cases
// come in fleets: a few expressions, a few pods with claims that use them, a few
// nodes, and one or two scheduling cycles in which different devices are in use.
// Fleets also show that answers do not depend on what an allocator was asked before,
// or what others with the same cache were asked.

// randomCases is the number of cases: three of eight of them with expressions of the corpus, the
// others with random ones.
func randomCases() int { return cases.Of(10_000, 200_000) }

// tally counts cases, to keep the generators from degenerating unnoticed. An
// interesting case is one in which devices were passed over.
type tally struct{ cases, found, none, failed, cut, cutAndFound, cutAndNone, cutAndFailed int }

func (s *tally) enter(a response, cuts int64) {
	s.cases++
	for _, outcome := range []struct {
		met      bool
		all, cut *int
	}{
		{a.Results != nil, &s.found, &s.cutAndFound},
		{a.Results == nil && a.onNode, &s.none, &s.cutAndNone},
		{a.Results == nil && !a.onNode, &s.failed, &s.cutAndFailed},
	} {
		if outcome.met {
			*outcome.all++
			if cuts > 0 {
				s.cut++
				*outcome.cut++
			}
		}
	}
}

func (s *tally) add(o tally) {
	s.cases += o.cases
	s.found += o.found
	s.none += o.none
	s.failed += o.failed
	s.cut += o.cut
	s.cutAndFound += o.cutAndFound
	s.cutAndNone += o.cutAndNone
	s.cutAndFailed += o.cutAndFailed
}

// Reading expressions changes nothing but the number of steps and evaluations: not
// the devices, not which error is met, with all its text.
func TestSameAsExhaustive(t *testing.T) {
	// Most of what is allocated is garbage soon.
	percent := debug.SetGCPercent(400)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	for _, kind := range []struct {
		name   string
		shards int
		draw   func(*rapid.T) *fleet
		check  func(*testing.T, tally)
	}{
		{"random", 5, randomFleet, func(t *testing.T, s tally) {
			require.Greater(t, s.cut, s.cases/5)
			require.Greater(t, s.cutAndFound, s.cases/30)
			require.Greater(t, s.cutAndNone, s.cases/10)
			require.Greater(t, s.cutAndFailed, s.cases/250)
			require.Greater(t, s.found, s.cases/5)
			require.Greater(t, s.failed, s.cases/50)
		}},
		{"corpus", 3, corpusFleet, func(t *testing.T, s tally) {
			require.Greater(t, s.cut, s.cases/5)
			require.Greater(t, s.cutAndFound, s.cases/30)
			require.Greater(t, s.cutAndNone, s.cases/10)
			require.Greater(t, s.found, s.cases/5)
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			var mutex sync.Mutex
			var sum tally
			t.Cleanup(func() {
				t.Logf("%+v", sum)
				if !t.Failed() {
					kind.check(t, sum)
				}
			})
			for shard := range kind.shards {
				t.Run(strconv.Itoa(shard), func(t *testing.T) {
					t.Parallel()
					s := sameAsExhaustive(t, randomCases()/8, kind.draw)
					mutex.Lock()
					defer mutex.Unlock()
					sum.add(s)
				})
			}
		})
	}
}

// sameAsExhaustive goes through so many cases, or a few more.
func sameAsExhaustive(t *testing.T, n int, draw func(*rapid.T) *fleet) tally {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	var seen tally
	cases.Until(t, 50, func() bool { return seen.cases >= n }, func(rt *rapid.T) {
		if seen.cases < n {
			compareFleet(t, rt, draw(rt), environment, &seen)
		}
	})
	return seen
}

// FuzzSameAsExhaustive is TestSameAsExhaustive for as long as one likes.
func FuzzSameAsExhaustive(f *testing.F) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(f, err)
	// A fleet takes some thousand draws of eight bytes. Inputs that are too short are
	// skipped, so the fuzzer starts from long ones.
	for seed := range byte(8) {
		input := make([]byte, 32<<10)
		_, _ = rand.NewChaCha8([32]byte{seed}).Read(input) // never fails
		f.Add(input)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		rapid.MakeFuzz(func(rt *rapid.T) {
			draw := rapid.SampledFrom([]func(*rapid.T) *fleet{randomFleet, randomFleet, corpusFleet}).Draw(rt, "kind")
			compareFleet(t, rt, draw(rt), environment, &tally{})
		})(t, input)
	})
}

// comparison of the two searches for a fleet.
type comparison struct {
	*fleet
	t  testing.TB
	rt *rapid.T
	// environment compiles for this fleet and for no others at the same time: when it
	// forgets an expression, more has to be found out twice.
	environment *device.Environment
	// want is what the exhaustive search answers, got what the other one answered first.
	// Both are by cycle and question.
	want, got [][]response
}

func compareFleet(t testing.TB, rt *rapid.T, f *fleet, environment *device.Environment, seen *tally) {
	c := &comparison{fleet: f, t: t, rt: rt, environment: environment}
	shared := NewCache()
	stats := make([]Stats, len(f.cycles))
	for cycle := range f.cycles {
		c.want, c.got = append(c.want, nil), append(c.got, nil)
		stats[cycle] = c.compare(cycle, shared, seen)
	}
	c.compareAgain(shared, stats)
}

// search is the allocator under test. What allocators share is given to it here.
func (c *comparison) search(cycle int, shared *Cache) *Allocator {
	return c.allocator(c.t, cycle, WithEnvironment(c.environment), WithCache(shared))
}

// compare asks both searches all questions of a cycle.
func (c *comparison) compare(cycle int, shared *Cache, seen *tally) Stats {
	reference, a := c.allocator(c.t, cycle, WithEnvironment(c.environment), WithExhaustiveSearch()), c.search(cycle, shared)
	for i, q := range c.questions() {
		allBefore, before := reference.Stats(), a.Stats()
		c.want[cycle] = append(c.want[cycle], c.ask(c.t.Context(), reference, q).withoutReason())
		c.got[cycle] = append(c.got[cycle], c.ask(c.t.Context(), a, q))
		c.check(cycle, i, q, c.got[cycle][i])
		all, some := reference.Stats(), a.Stats()
		if some.Evaluations-before.Evaluations > all.Evaluations-allBefore.Evaluations {
			c.rt.Fatalf("more evaluations than the exhaustive search: %+v, %+v before, exhaustive %+v, %+v before\n%s",
				some, before, all, allBefore, c.describe(cycle, q))
		}
		seen.enter(c.want[cycle][i], some.Cuts-before.Cuts)
	}
	return a.Stats()
}

// check compares an answer with that of the exhaustive search, but for the reason why
// claims don't fit.
func (c *comparison) check(cycle, i int, q question, got response) {
	c.checkSame("-exhaustive, +search", cycle, q, c.want[cycle][i], got.withoutReason())
}

func (c *comparison) checkSame(title string, cycle int, q question, want, got response) {
	if reflect.DeepEqual(want, got) {
		return
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(response{})); diff != "" {
		c.rt.Fatalf("%s: %s\n%s", title, diff, c.describe(cycle, q))
	}
}

// compareAgain asks in another way than before.
func (c *comparison) compareAgain(shared *Cache, stats []Stats) {
	switch kind := rapid.SampledFrom([]string{"same", "shuffled", "concurrent", "warm", "alone"}).Draw(c.rt, "again"); kind {
	case "same":
		c.inTheSameWay(stats)
	case "shuffled":
		c.inAnyOrder(shared)
	case "concurrent":
		c.concurrently(NewCache())
	case "warm":
		c.inOrder(shared)
	case "alone":
		c.alone()
	default:
		panic(fmt.Sprintf("unknown way %q", kind))
	}
}

// inTheSameWay: for the same input the counts are the same, and even the reasons.
func (c *comparison) inTheSameWay(stats []Stats) {
	shared := NewCache()
	for cycle := range c.cycles {
		a := c.search(cycle, shared)
		for i, q := range c.questions() {
			c.checkSame("-first, +again", cycle, q, c.got[cycle][i], c.ask(c.t.Context(), a, q))
		}
		require.Equal(c.rt, stats[cycle], a.Stats())
	}
}

// inOrder asks the same with all that is known already.
func (c *comparison) inOrder(shared *Cache) {
	for cycle := range c.cycles {
		a := c.search(cycle, shared)
		for i, q := range c.questions() {
			c.check(cycle, i, q, c.ask(c.t.Context(), a, q))
		}
	}
}

// inAnyOrder asks each question twice, with all that is known already.
func (c *comparison) inAnyOrder(shared *Cache) {
	seed := rapid.Uint64().Draw(c.rt, "order")
	for cycle := range c.cycles {
		a := c.search(cycle, shared)
		questions := c.questions()
		order := rand.New(rand.NewPCG(seed, 0)).Perm(2 * len(questions))
		for _, i := range order {
			i %= len(questions)
			c.check(cycle, i, questions[i], c.ask(c.t.Context(), a, questions[i]))
		}
	}
}

// concurrently asks one question per goroutine and node, as the scheduler's Filter
// does.
func (c *comparison) concurrently(shared *Cache) {
	for cycle := range c.cycles {
		a := c.search(cycle, shared)
		questions := c.questions()
		got := make([]response, len(questions))
		var group errgroup.Group
		for i, q := range questions {
			group.Go(func() (err error) {
				defer func() {
					if met := recover(); met != nil {
						err = fmt.Errorf("panic: %v\n%s\n%s", met, debug.Stack(), c.describe(cycle, q))
					}
				}()
				got[i] = c.ask(c.t.Context(), a, q)
				return nil
			})
		}
		require.NoError(c.rt, group.Wait())
		for i, q := range questions {
			c.check(cycle, i, q, got[i])
		}
	}
}

// alone asks a new allocator, without a cache that others have, for every question.
func (c *comparison) alone() {
	for cycle := range c.cycles {
		for i, q := range c.questions() {
			c.check(cycle, i, q, c.ask(c.t.Context(), c.search(cycle, NewCache()), q))
		}
	}
}
