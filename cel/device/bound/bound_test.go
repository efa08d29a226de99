// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/internal/randomexpr"
)

func environment(t testing.TB) *device.Environment {
	t.Helper()
	e, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	return e
}

// partial draws a partial set: devices chosen, devices possible, the rest excluded.
func partial(t *rapid.T, n, size int) bound.Partial {
	p := bound.Partial{Chosen: bound.NewBits(n), Possible: bound.NewBits(n), Left: size}
	for i := range n {
		switch rapid.IntRange(0, 3).Draw(t, "part") {
		case 0:
			if p.Left > 0 {
				p.Chosen.Add(i)
				p.Left--
			}
		case 1:
		default:
			p.Possible.Add(i)
		}
	}
	return p
}

func clone(p bound.Partial) bound.Partial {
	return bound.Partial{Chosen: append(bound.Bits{}, p.Chosen...), Possible: append(bound.Bits{}, p.Possible...), Left: p.Left}
}

// completions calls f for all sets that p may become.
func completions(p bound.Partial, n, from int, f func(bound.Bits)) {
	if p.Left == 0 {
		f(p.Chosen)
		return
	}
	for i := from; i < n; i++ {
		if p.Possible.Has(i) {
			next := clone(p)
			next.Chosen.Add(i)
			next.Possible.Remove(i)
			next.Left--
			completions(next, n, i+1, f)
		}
	}
}

// outcome evaluates the expression for a complete set, in ascending order.
func outcome(t testing.TB, e *device.Expression, all []*device.Device, set bound.Bits) bound.Outcome {
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

// statistics keep the generator from degenerating unnoticed.
type statistics struct{ compiled, understood, decided, hopeless int }

// TestBoundsAreSound is the promise of the package.
func TestBoundsAreSound(t *testing.T) {
	var seen statistics
	rapid.Check(t, soundness(t, &seen))
	t.Logf("%+v", seen)
	require.Greater(t, seen.understood, seen.compiled/4)
	require.Greater(t, seen.decided, seen.compiled/6)
	require.Greater(t, seen.hopeless, seen.compiled/3)
}

func FuzzBoundsAreSound(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(soundness(f, &statistics{})))
}

func soundness(t testing.TB, statistics *statistics) func(*rapid.T) {
	e := environment(t)
	return func(rt *rapid.T) {
		text := randomexpr.Condition(rt, randomAttributes)
		expression, err := e.Compile(text)
		if err != nil {
			return // a type error, say of min() over strings in arithmetic
		}
		statistics.compiled++
		n := rapid.IntRange(1, 7).Draw(rt, "devices")
		size := rapid.IntRange(1, min(n, 4)).Draw(rt, "size")
		all := devices(rt, n)
		p := partial(rt, n, size)

		analysis := bound.Analyze(expression, size)
		tables := analysis.Tabulate(all).NewBounds(t.Context(), nil)
		possible := tables.Bound(clone(p))
		var met bound.Outcome
		complete := 0
		completions(p, n, 0, func(set bound.Bits) {
			complete++
			met |= outcome(t, expression, all, set)
		})
		if met&^possible != 0 {
			rt.Fatalf("%s\nchosen %b possible %b left %d: may become %s, bounds say %s", text, p.Chosen, p.Possible, p.Left, met, possible)
		}
		refined := clone(p)
		if tables.Hopeless(refined, bound.Thorough) {
			statistics.hopeless++
			if met&^bound.False != 0 {
				rt.Fatalf("%s\nchosen %b possible %b left %d: hopeless, but may become %s", text, p.Chosen, p.Possible, p.Left, met)
			}
			return
		}
		require.Equal(rt, p.Chosen, refined.Chosen)
		// What was removed must only be in completions that are false.
		completions(p, n, 0, func(set bound.Bits) {
			for i := range n {
				if set.Has(i) && !refined.Chosen.Has(i) && !refined.Possible.Has(i) {
					if o := outcome(t, expression, all, set); o != bound.False {
						rt.Fatalf("%s\nchosen %b possible %b left %d: device %d was removed, but set %b is %s", text, p.Chosen, p.Possible, p.Left, i, set, o)
					}
				}
			}
		})
		if analysis.Understood() {
			statistics.understood++
		}
		if complete > 0 && possible != bound.Open {
			statistics.decided++
		}
	}
}
