// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/device"
)

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
	want, got [][]answer
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
func (c *comparison) check(cycle, i int, q question, got answer) {
	c.checkSame("-exhaustive, +search", cycle, q, c.want[cycle][i], got.withoutReason())
}

func (c *comparison) checkSame(title string, cycle int, q question, want, got answer) {
	if reflect.DeepEqual(want, got) {
		return
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(answer{})); diff != "" {
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
		got := make([]answer, len(questions))
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
