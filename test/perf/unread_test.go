// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/internal/testing/shape"
)

// unread means ring-12-4 and is written so that nothing can be told from a part of a
// set: lists of lists are not read.
const unread = "[devices.map(d, d.attributes['mla.example.com'].index)].flatten().max() - " +
	"[devices.map(d, d.attributes['mla.example.com'].index)].flatten().min() == 3"

func ringOfTwelve(tb testing.TB) shape.Scenario {
	tb.Helper()
	s := scenarioNamed(tb, "ring-12-4")
	s.Expression = unread
	return s
}

// BenchmarkUnread compares the search with the reference where it can't do better:
// what it costs to have tried. Both have a compiled expression and nothing in the
// cache, and they take turns.
func BenchmarkUnread(b *testing.B) {
	s := ringOfTwelve(b)
	h := newHardware(b, s, 1)
	for _, o := range s.Occupancies {
		b.Run("layout="+o.Name, func(b *testing.B) {
			f := h.occupied([]shape.Set{o.InUse})
			claim, err := f.Claim()
			require.NoError(b, err)
			f.inTurn(b, claim)
		})
	}
}

func (f *fleet) inTurn(b *testing.B, claim *resourceapi.ResourceClaim) {
	ctx := b.Context()
	a, err := f.celset(ctx, newCache())
	require.NoError(b, err)
	_, err = f.verify(ctx, a, claim)
	require.NoError(b, err)
	allocate := func(a *allocator.Allocator, err error) error {
		if err != nil {
			return err
		}
		return f.allocate(ctx, a, claim)
	}
	inTurn(b, func() error { return allocate(f.celset(ctx, newCache())) }, func() error { return allocate(f.exhaustive(ctx)) })
}

// TestUnreadIsUnread: each set is evaluated, up to the answer.
func TestUnreadIsUnread(t *testing.T) {
	s := ringOfTwelve(t)
	h := newHardware(t, s, 1)
	for _, o := range s.Occupancies {
		f := h.occupied([]shape.Set{o.InUse})
		claim, err := f.Claim()
		require.NoError(t, err)
		a, err := f.celset(t.Context(), newCache())
		require.NoError(t, err)
		f.requireVerified(t, a, claim)
		require.Equal(t, f.sets().Int64(), a.Stats().Evaluations, o.Name)
	}
}

// inTurn measures two searches that differ by less than the speed of a machine does from one
// second to the next: they take turns. The metric "ratio" is the middle of the ratios of all
// pairs, "fast-ns" and "exhaustive-ns" are the middles of the times; ns/op is a pair.
func inTurn(b *testing.B, fast, exhaustive func() error) {
	b.Helper()
	searches := [2]func() error{fast, exhaustive}
	var times [2][]float64
	var ratios []float64
	for first := 0; b.Loop(); first = 1 - first {
		// Who comes second finds the devices in the processor's cache.
		var pair [2]float64
		for _, i := range []int{first, 1 - first} {
			start := time.Now()
			err := searches[i]()
			pair[i] = float64(time.Since(start).Nanoseconds())
			if err != nil {
				b.Fatal(err)
			}
			times[i] = append(times[i], pair[i])
		}
		ratios = append(ratios, pair[0]/pair[1])
	}
	b.ReportMetric(middle(times[0]), "fast-ns")
	b.ReportMetric(middle(times[1]), "exhaustive-ns")
	b.ReportMetric(middle(ratios), "ratio")
}

func middle(values []float64) float64 {
	sort.Float64s(values)
	return values[len(values)/2]
}
