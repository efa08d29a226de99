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
	"github.com/celset/celset/internal/shape"
)

// unread means ring-12-4 and is written so that nothing can be told from a part of a
// set: lists of lists are not read.
const unread = "[devices.map(d, d.attributes['mla.example.com'].index)].flatten().max() - " +
	"[devices.map(d, d.attributes['mla.example.com'].index)].flatten().min() == 3"

func ringOfTwelve(tb testing.TB) shape.Scenario {
	tb.Helper()
	for _, s := range shape.Scenarios() {
		if s.Name == "ring-12-4" {
			s.Expression = unread
			return s
		}
	}
	tb.Fatal("no scenario ring-12-4")
	return shape.Scenario{}
}

// BenchmarkUnread compares the search with the reference where it can't do better:
// what it costs to have tried. Both have a compiled expression and nothing in the
// cache. They take turns, because a machine's speed changes by more in a second than
// they differ by: "ratio" is the middle of the ratios of all pairs, fast-ns and
// exhaustive-ns are the middles of the times. ns/op is a pair.
func BenchmarkUnread(b *testing.B) {
	s := ringOfTwelve(b)
	h := newHardware(b, s, 1)
	for _, l := range s.Layouts {
		b.Run("layout="+l.Name, func(b *testing.B) {
			f := h.occupied([]shape.Set{l.InUse})
			claim, err := f.Claim()
			if err != nil {
				b.Fatal(err)
			}
			f.inTurn(b, claim)
		})
	}
}

func (f *fleet) inTurn(b *testing.B, claim *resourceapi.ResourceClaim) {
	ctx := b.Context()
	a, err := f.celset(ctx, newCache())
	if err != nil {
		b.Fatal(err)
	}
	if _, err := f.verify(ctx, a, claim); err != nil {
		b.Fatal(err)
	}
	timed := func(newAllocator func() (*allocator.Allocator, error)) float64 {
		start := time.Now()
		a, err := newAllocator()
		if err == nil {
			err = f.allocate(ctx, a, claim)
		}
		elapsed := time.Since(start)
		if err != nil {
			b.Fatal(err)
		}
		return float64(elapsed.Nanoseconds())
	}
	searches := []func() (*allocator.Allocator, error){
		func() (*allocator.Allocator, error) { return f.celset(ctx, newCache()) },
		func() (*allocator.Allocator, error) { return f.exhaustive(ctx) },
	}
	var fast, exhaustive, ratios []float64
	for first := 0; b.Loop(); first = 1 - first {
		// Who comes second finds the devices in the processor's cache.
		var times [2]float64
		times[first] = timed(searches[first])
		times[1-first] = timed(searches[1-first])
		fast = append(fast, times[0])
		exhaustive = append(exhaustive, times[1])
		ratios = append(ratios, times[0]/times[1])
	}
	b.ReportMetric(middle(fast), "fast-ns")
	b.ReportMetric(middle(exhaustive), "exhaustive-ns")
	b.ReportMetric(middle(ratios), "ratio")
}

func middle(values []float64) float64 {
	sort.Float64s(values)
	return values[len(values)/2]
}

// TestUnreadIsUnread: each set is evaluated, up to the answer.
func TestUnreadIsUnread(t *testing.T) {
	s := ringOfTwelve(t)
	h := newHardware(t, s, 1)
	for _, l := range s.Layouts {
		f := h.occupied([]shape.Set{l.InUse})
		claim, err := f.Claim()
		require.NoError(t, err)
		a, err := f.celset(t.Context(), newCache())
		require.NoError(t, err)
		f.requireVerified(t, a, claim)
		require.Equal(t, f.sets().Int64(), a.Stats().Evaluations, l.Name)
	}
}
