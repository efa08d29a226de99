// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"fmt"
	"math"
	"testing"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/internal/testing/shape"
)

// exhaustibles are claims that the exhaustive search comes to an end with. All devices are free. Where no
// set satisfies the expression the reference looks at all of them: 635,376 of four of 64, 134,596 of six
// of 24, 70 of four of eight.
var exhaustibles = []struct {
	name  string
	claim shape.Scenario
	found bool
}{
	{"devices=64/count=4/found=no", ofMesh(8, 8, 4, boxOf(0, 2)), false},
	{"devices=24/count=6/found=no", ofMesh(4, 6, 6, boxOf(0, 4)), false},
	{"devices=8/count=4/found=no", ofMesh(2, 4, 4, boxOf(0, 2)), false},
	{"devices=8/count=4/found=at-once", ofMesh(2, 4, 4, boxOf(0, 3)), true},
	{"devices=8/count=4/found=later", ofMesh(2, 4, 4, boxOf(1, 1)), true},
}

// BenchmarkReference is the search beside the exhaustive one where that ends. An
// iteration makes an allocator and asks it, as for one pod and one node.
func BenchmarkReference(b *testing.B) {
	for _, e := range exhaustibles {
		f, claims := asked(b, e.claim)
		allocate := func(option allocator.Option) error {
			a, err := f.celset(b.Context(), option, allocator.WithCostBudget(math.MaxUint64), allocator.WithStepBudget(math.MaxInt64))
			if err != nil {
				return err
			}
			results, err := a.Allocate(b.Context(), f.nodes[0], claims)
			if err == nil && len(results) == 1 != e.found {
				err = fmt.Errorf("%d results, although there is a set: %v", len(results), e.found)
			}
			return err
		}
		warm := newCache()
		for _, search := range []struct {
			name   string
			option func() allocator.Option
		}{{"fast-cold", newCache}, {"fast-warm", func() allocator.Option { return warm }}, {"exhaustive", allocator.WithExhaustiveSearch}} {
			b.Run(e.name+"/search="+search.name, func(b *testing.B) {
				for b.Loop() {
					if err := allocate(search.option()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		if len(e.claim.Topology.Devices) > 8 {
			continue // They differ by a thousand.
		}
		b.Run(e.name+"/search=cold-and-exhaustive", func(b *testing.B) {
			inTurn(b, func() error { return allocate(newCache()) }, func() error { return allocate(allocator.WithExhaustiveSearch()) })
		})
	}
}

// boxOf wants the devices to reach over so many rows and columns more than one.
func boxOf(rows, cols int) string {
	const side = "devices.map(d, d.attributes['mla.example.com'].%[1]s).max() - devices.map(d, d.attributes['mla.example.com'].%[1]s).min() == %[2]d"
	return fmt.Sprintf(side, "row", rows) + " && " + fmt.Sprintf(side, "col", cols)
}
