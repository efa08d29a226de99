// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"testing"

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
// cache, and they take turns.
func BenchmarkUnread(b *testing.B) {
	s := ringOfTwelve(b)
	h := newHardware(b, s, 1)
	for _, o := range s.Occupancies {
		b.Run("layout="+o.Name, func(b *testing.B) {
			f := h.occupied([]shape.Set{o.InUse})
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
