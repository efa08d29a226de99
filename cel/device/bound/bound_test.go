// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"slices"
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

// drawPartial chooses some devices, leaves some out, and leaves the rest possible.
func drawPartial(t *rapid.T, s *sound) bound.Partial {
	p := s.partial(nil, nil)
	for i := range s.all {
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
	return bound.Partial{Chosen: slices.Clone(p.Chosen), Domain: slices.Clone(p.Domain), Left: p.Left}
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
		if rapid.Bool().Draw(rt, "ascending") {
			analysis = bound.AnalyzeAscending(expression, size)
		}
		for range rapid.IntRange(1, perExpression).Draw(rt, "sets") {
			statistics.tried++
			s := soundOf(formula{text, expression}, size, devices(rt, rapid.IntRange(size, 7).Draw(rt, "devices")))
			s.tables = analysis.Tabulate(s.all)
			bounds, p := s.bounds(rt), drawPartial(rt, s)
			for _, effort := range []bound.Effort{bound.Quick, bound.Thorough} {
				if infeasible, _ := s.check(rt, bounds, p, effort); infeasible {
					statistics.infeasible++
					break
				}
			}
			if analysis.Understood() {
				statistics.understood++
			}
			if p.Left <= p.Domain.Count() && bounds.Bound(p) != bound.Open {
				statistics.decided++
			}
		}
	}
}
