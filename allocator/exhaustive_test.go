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

// These tests compare the search with the exhaustive search. A case is the result for the claims of one pod on one node.
//
// Compiling an expression takes as long as evaluating it on about fifty sets, so each random fleet has many cases. A fleet has
// a few expressions, a few pods whose claims use them, a few nodes, and one or two scheduling cycles with different devices in
// use. Fleets also show that results don't depend on earlier calls of the allocator, or of other allocators with the same
// cache.

// randomCases returns the number of cases. Three of eight use expressions of the corpus, the others random ones.
func randomCases() int { return cases.Of(10_000, 200_000) }

// tally counts cases by outcome. The tests use it to detect generators that produce too few interesting cases. The fields with
// cut count the cases where the search skipped devices.
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

// The search returns the same devices and errors as the exhaustive search. Only the numbers of steps and evaluations differ.
func TestSameAsExhaustive(t *testing.T) {
	// Most allocated memory soon becomes garbage, so collect it less often.
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

// sameAsExhaustive compares both searches for at least n cases.
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

// FuzzSameAsExhaustive makes the comparison of TestSameAsExhaustive for as long as the fuzzer runs.
func FuzzSameAsExhaustive(f *testing.F) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(f, err)
	// Drawing a fleet uses some thousand values of eight bytes. Shorter inputs are skipped, so the fuzzer starts with long inputs.
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

// comparison compares the search with the exhaustive search for one fleet.
type comparison struct {
	*fleet
	t  testing.TB
	rt *rapid.T
	// environment compiles the expressions of one fleet at a time. A shared environment would evict expressions of other
	// fleets, and their results would be computed again.
	environment *device.Environment
	// want holds the results of the exhaustive search. got holds the first results of the search under test. Both are by cycle and
	// question.
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

// search returns the allocator under test, with the environment and the cache that allocators of a scheduler share.
func (c *comparison) search(cycle int, shared *Cache) *Allocator {
	return c.allocator(c.t, cycle, WithEnvironment(c.environment), WithCache(shared))
}

// compare runs both searches for all questions of a cycle and compares the results.
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

// check compares a result with the result of the exhaustive search. It ignores the reason why claims don't fit.
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

// compareAgain repeats all questions in a random way: with a new cache, a warm cache, another order, or concurrently.
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

// inTheSameWay repeats the questions with a new cache. The results, the reasons and the counts of work must not change.
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

// inOrder repeats the questions in order with a warm cache.
func (c *comparison) inOrder(shared *Cache) {
	for cycle := range c.cycles {
		a := c.search(cycle, shared)
		for i, q := range c.questions() {
			c.check(cycle, i, q, c.ask(c.t.Context(), a, q))
		}
	}
}

// inAnyOrder asks each question twice, in random order with a warm cache.
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

// concurrently asks each question in its own goroutine, as the scheduler's Filter does.
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

// alone asks every question of a new allocator without a shared cache.
func (c *comparison) alone() {
	for cycle := range c.cycles {
		for i, q := range c.questions() {
			c.check(cycle, i, q, c.ask(c.t.Context(), c.search(cycle, NewCache()), q))
		}
	}
}
