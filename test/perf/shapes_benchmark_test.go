// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"context"
	"errors"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/internal/testing/shape"
)

// manyNodes is the size of a cluster in which no two nodes have the same devices in
// use. Of few devices there are fewer occupancies; then it has fewer nodes, and the
// metric "nodes" says how many.
const manyNodes = 1000

// patience is the time that a search without pruning has, for all nodes of a
// fleet.
const patience = 2 * time.Second

// BenchmarkShapes is the table of scenarios and occupancies. An iteration is what a
// scheduler does for a pod: a new allocator, and Allocate for all nodes one after
// the other. Devices and errors are checked against the search written by hand
// before the clock starts. Rows call an occupancy a layout, as older results do, which
// they are compared with.
//
//	fast-warm    the claim has been seen before
//	fast-cold    an expression that was never compiled, and nothing in the cache
//	exhaustive   the reference: every set is evaluated
//	upstream     Kubernetes' allocator, where attributes can express the shape
//	handwritten  the search for this one shape, without an allocator around it
//
// Where exhaustive or upstream does not end within two seconds there is no time, but
// "nodes-done", what it could do, and "sets", the number of sets that an exhaustive
// search has to look at on all nodes.
func BenchmarkShapes(b *testing.B) {
	for _, s := range shape.Scenarios() {
		b.Run("scenario="+s.Name, func(b *testing.B) {
			one := newHardware(b, s, 1)
			many := sync.OnceValue(func() *hardware { return newHardware(b, s, manyNodes) })
			for _, o := range s.Occupancies {
				b.Run("layout="+o.Name, func(b *testing.B) {
					single := one.occupied([]shape.Set{o.InUse})
					b.Run("nodes=1", single.benchmarks)
					b.Run("nodes=1000", func(b *testing.B) {
						fleet := many().occupied(s.Variants(o, manyNodes))
						fleet.unfinished = single.unfinished
						fleet.benchmarks(b)
					})
				})
			}
		})
	}
}

func (f *fleet) benchmarks(b *testing.B) {
	claim, err := f.Claim()
	require.NoError(b, err)
	b.Run("search=fast-warm", func(b *testing.B) { f.warm(b, claim) })
	b.Run("search=fast-cold", f.cold)
	b.Run("search=exhaustive", func(b *testing.B) {
		f.patiently(b, claim, func(ctx context.Context) (structured.Allocator, error) { return f.exhaustive(ctx) })
	})
	if claim := upstreamClaim(f.Scenario); claim != nil {
		b.Run("search=upstream", func(b *testing.B) { f.patiently(b, claim, f.upstream) })
	}
	b.Run("search=handwritten", f.handwritten)
}

// report adds the figures for a node.
func (f *fleet) report(b *testing.B, steps int64) {
	if n := len(f.nodes); n > 1 {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/node")
		b.ReportMetric(float64(n), "nodes")
	}
	if steps > 0 {
		b.ReportMetric(float64(steps), "steps/op")
	}
}

// warm is an allocator after others that had the same cache.
func (f *fleet) warm(b *testing.B, claim *resourceapi.ResourceClaim) {
	cache := newCache()
	f.measure(b, claim, func() allocator.Option { return cache })
}

// measure takes an expression that is compiled already.
func (f *fleet) measure(b *testing.B, claim *resourceapi.ResourceClaim, cache func() allocator.Option) {
	ctx := b.Context()
	a, err := f.celset(ctx, cache())
	require.NoError(b, err)
	_, err = f.verify(ctx, a, claim)
	require.NoError(b, err)
	for b.Loop() {
		if a, err = f.celset(ctx, cache()); err != nil {
			b.Fatal(err)
		}
		if err := f.allocate(ctx, a, claim); err != nil {
			b.Fatal(err)
		}
	}
	f.report(b, a.Stats().Steps)
}

// compilations numbers the expressions that were never compiled before, over all
// benchmarks of the process.
var compilations int

func (f *fleet) cold(b *testing.B) {
	ctx := b.Context()
	iteration := func(allocate func(context.Context, structured.Allocator, *resourceapi.ResourceClaim) error) int64 {
		compilations++
		// Making the claim takes some microseconds.
		claim, err := f.ClaimWith(unseen(f.Expression, compilations))
		if err != nil {
			b.Fatal(err)
		}
		a, err := f.celset(ctx, newCache())
		if err != nil {
			b.Fatal(err)
		}
		if err := allocate(ctx, a, claim); err != nil {
			b.Fatal(err)
		}
		return a.Stats().Steps
	}
	iteration(func(ctx context.Context, a structured.Allocator, claim *resourceapi.ResourceClaim) error {
		_, err := f.verify(ctx, a, claim)
		return err
	})
	var steps int64
	for b.Loop() {
		steps = iteration(f.allocate)
	}
	f.report(b, steps)
}

// patiently measures an allocator if it can do all nodes in the time it has.
func (f *fleet) patiently(b *testing.B, claim *resourceapi.ResourceClaim, newAllocator func(context.Context) (structured.Allocator, error)) {
	ctx := b.Context()
	if nodes, ends := f.ends(b, claim, newAllocator); !ends {
		sets, _ := new(big.Float).SetInt(f.sets()).Float64()
		b.ReportMetric(sets, "sets")
		b.ReportMetric(float64(nodes), "nodes-done")
		b.ReportMetric(0, "ns/op") // no time instead of a wrong one
		return
	}
	for b.Loop() {
		a, err := newAllocator(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if err := f.allocate(ctx, a, claim); err != nil {
			b.Fatal(err)
		}
	}
	f.report(b, 0)
}

// ends tells whether an allocator can do all nodes in the time it has, and if not,
// how many it can. Package testing runs a benchmark without a loop more than once,
// so that is remembered, as well as for a fleet that begins with the same node.
func (f *fleet) ends(b *testing.B, claim *resourceapi.ResourceClaim, newAllocator func(context.Context) (structured.Allocator, error)) (int, bool) {
	if nodes, unfinished := f.unfinished[claim.Name]; unfinished {
		return nodes, false
	}
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	a, err := newAllocator(ctx)
	require.NoError(b, err)
	nodes, err := f.verify(ctx, a, claim)
	if errors.Is(err, context.DeadlineExceeded) {
		f.unfinished[claim.Name] = nodes
		return nodes, false
	}
	require.NoError(b, err)
	return nodes, true
}

// sets is what an exhaustive search has to look at on all nodes.
func (f *fleet) sets() *big.Int {
	sum := new(big.Int)
	for _, free := range f.free {
		sum.Add(sum, f.Sets(free))
	}
	return sum
}

func (f *fleet) handwritten(b *testing.B) {
	total := 0
	for b.Loop() {
		total = 0
		for _, free := range f.free {
			_, steps := f.HandWritten(free)
			total += steps
		}
	}
	f.report(b, int64(total))
}
