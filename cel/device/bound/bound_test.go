// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/randomexpr"
)

func environment(t testing.TB) *device.Environment {
	t.Helper()
	e, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	return e
}

// partial draws a partial set: devices chosen, devices possible, the rest excluded.
func partial(t *rapid.T, n, size int) bound.Partial {
	p := bound.Partial{Chosen: bitset.New(n), Domain: bitset.New(n), Left: size}
	for i := range n {
		switch rapid.IntRange(0, 3).Draw(t, "part") {
		case 0:
			if p.Left > 0 {
				p.Chosen.Add(i)
				p.Left--
			}
		case 1:
		default:
			p.Domain.Add(i)
		}
	}
	return p
}

func clone(p bound.Partial) bound.Partial {
	return bound.Partial{Chosen: append(bitset.Set{}, p.Chosen...), Domain: append(bitset.Set{}, p.Domain...), Left: p.Left}
}

// completions calls f for all sets that p may become.
func completions(p bound.Partial, n, from int, f func(bitset.Set)) {
	if p.Left == 0 {
		f(p.Chosen)
		return
	}
	for i := from; i < n; i++ {
		if p.Domain.Has(i) {
			next := clone(p)
			next.Chosen.Add(i)
			next.Domain.Remove(i)
			next.Left--
			completions(next, n, i+1, f)
		}
	}
}

// outcome evaluates the expression for a complete set, in ascending order.
func outcome(t *rapid.T, e *device.Expression, all []*device.Device, set bitset.Set) bound.Outcome {
	t.Helper()
	var members []*device.Device
	for i, d := range all {
		if set.Has(i) {
			members = append(members, d)
		}
	}
	verdict, err := e.Satisfied(t.Context(), members, nil)
	switch {
	case err != nil:
		return bound.Error
	case verdict:
		return bound.True
	default:
		return bound.False
	}
}

// statistics keep the generator from degenerating unnoticed. All but compiled count
// partial sets.
type statistics struct{ compiled, tried, understood, decided, infeasible int }

// perExpression is how many partial sets each expression is tried on: compiling and
// analysing take most of the time.
const perExpression = 2

// TestBoundsAreSound is the promise of the package.
func TestBoundsAreSound(t *testing.T) {
	var seen statistics
	cases.CheckN(t, cases.Of(2000, 10_000), soundness(t, &seen))
	t.Logf("%+v", seen)
	require.Greater(t, seen.understood, seen.tried/4)
	require.Greater(t, seen.decided, seen.tried/7)
	require.Greater(t, seen.infeasible, seen.tried/3)
}

func FuzzBoundsAreSound(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(soundness(f, &statistics{})))
}

func soundness(t testing.TB, statistics *statistics) func(*rapid.T) {
	return soundnessOf(t, statistics, func(rt *rapid.T) string { return randomexpr.Condition(rt, randomAttributes) })
}

// soundnessOf is for texts that are written in a certain way.
func soundnessOf(t testing.TB, statistics *statistics, write func(*rapid.T) string) func(*rapid.T) {
	e := environment(t)
	return func(rt *rapid.T) {
		text := write(rt)
		expression, err := e.Compile(rt.Context(), text)
		if err != nil {
			return // a type error, say of min() over strings in arithmetic
		}
		statistics.compiled++
		size := rapid.IntRange(1, 4).Draw(rt, "size")
		analysis := bound.Analyze(expression, size)
		for range rapid.IntRange(1, perExpression).Draw(rt, "sets") {
			statistics.tried++
			s := situation{text: text, expression: expression, analysis: analysis}
			s.all = devices(rt, rapid.IntRange(size, 7).Draw(rt, "devices"))
			s.partial = partial(rt, len(s.all), size)
			s.check(rt, statistics)
		}
	}
}

// situation is a partial set of devices.
type situation struct {
	text       string
	expression *device.Expression
	analysis   *bound.Analysis
	all        []*device.Device
	partial    bound.Partial
}

// check compares the bounds with all that the partial set can become.
func (s situation) check(t *rapid.T, statistics *statistics) {
	bounds := s.analysis.Tabulate(s.all).NewBounds(t.Context(), nil)
	possible := bounds.Bound(clone(s.partial))
	var met bound.Outcome
	complete := 0
	completions(s.partial, len(s.all), 0, func(set bitset.Set) {
		complete++
		met |= outcome(t, s.expression, s.all, set)
	})
	if met&^possible != 0 {
		t.Fatalf("%s: may become %s, bounds say %s", s, met, possible)
	}
	for _, effort := range []bound.Effort{bound.Quick, bound.Thorough} {
		propagated := clone(s.partial)
		if bounds.Infeasible(propagated, effort) {
			statistics.infeasible++
			if met&^bound.False != 0 {
				t.Fatalf("%s: infeasible, but may become %s", s, met)
			}
			return
		}
		s.checkRemoved(t, propagated)
	}
	if s.analysis.Understood() {
		statistics.understood++
	}
	if complete > 0 && possible != bound.Open {
		statistics.decided++
	}
}

// checkRemoved: what was removed may only be in completions that are false.
func (s situation) checkRemoved(t *rapid.T, propagated bound.Partial) {
	require.Equal(t, s.partial.Chosen, propagated.Chosen)
	completions(s.partial, len(s.all), 0, func(set bitset.Set) {
		for i := range s.all {
			if !set.Has(i) || propagated.Chosen.Has(i) || propagated.Domain.Has(i) {
				continue
			}
			if o := outcome(t, s.expression, s.all, set); o != bound.False {
				t.Fatalf("%s: device %d was removed, but set %b is %s", s, i, set, o)
			}
		}
	})
}

func (s situation) String() string {
	return fmt.Sprintf("%s\nchosen %b possible %b left %d", s.text, s.partial.Chosen, s.partial.Domain, s.partial.Left)
}
