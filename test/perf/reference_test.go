// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"fmt"
	"math"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/internal/topology"
)

// exhaustible is a claim that the exhaustive search comes to an end with.
type exhaustible struct {
	name       string
	rows, cols int
	count      int
	expression string
	found      bool
}

// exhaustibles have all devices free. Where no set satisfies the expression the
// reference looks at all of them: 635,376 of four of 64, 134,596 of six of 24, 70 of four
// of eight.
var exhaustibles = []exhaustible{
	{"devices=64/count=4/found=no", 8, 8, 4, boxOf(0, 2), false},
	{"devices=24/count=6/found=no", 4, 6, 6, boxOf(0, 4), false},
	{"devices=8/count=4/found=no", 2, 4, 4, boxOf(0, 2), false},
	{"devices=8/count=4/found=at-once", 2, 4, 4, boxOf(0, 3), true},
	{"devices=8/count=4/found=later", 2, 4, 4, boxOf(1, 1), true},
}

// BenchmarkReference is the search beside the exhaustive one where that ends. An
// iteration makes an allocator and asks it, as for one pod and one node.
func BenchmarkReference(b *testing.B) {
	for _, e := range exhaustibles {
		b.Run(e.name+"/search=fast-cold", func(b *testing.B) { e.measure(b, newCache) })
		b.Run(e.name+"/search=fast-warm", func(b *testing.B) {
			cache := newCache()
			e.measure(b, func() allocator.Option { return cache })
		})
		b.Run(e.name+"/search=exhaustive", func(b *testing.B) { e.measure(b, allocator.WithExhaustiveSearch) })
		if e.rows*e.cols > 8 {
			continue // They differ by a thousand.
		}
		b.Run(e.name+"/search=cold-and-exhaustive", func(b *testing.B) {
			allocate := e.prepare(b)
			inTurn(b, func() error { return allocate(newCache()) }, func() error { return allocate(allocator.WithExhaustiveSearch()) })
		})
	}
}

func (e exhaustible) measure(b *testing.B, option func() allocator.Option) {
	allocate := e.prepare(b)
	for b.Loop() {
		if err := allocate(option()); err != nil {
			b.Fatal(err)
		}
	}
}

// prepare returns what is measured.
func (e exhaustible) prepare(b *testing.B) (allocate func(allocator.Option) error) {
	mesh, err := topology.NewMesh(topology.Family{Driver: driver, Prefix: "mla"}, e.rows, e.cols)
	slices := slicesOf(b, mesh, err)
	claims := []*resourceapi.ResourceClaim{constrained(b, e.count, e.expression)}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	selectors := dracel.NewCache(10, dracel.Features{EnableConsumableCapacity: true})
	return func(option allocator.Option) error {
		a, err := allocator.NewAllocator(b.Context(), features, structured.AllocatedState{}, class, slices, selectors,
			option, allocator.WithCostBudget(math.MaxUint64), allocator.WithStepBudget(math.MaxInt64))
		if err != nil {
			return err
		}
		results, err := a.Allocate(b.Context(), node, claims)
		if err == nil && len(results) == 1 != e.found {
			err = fmt.Errorf("%d results, although there is a set: %v", len(results), e.found)
		}
		return err
	}
}

// boxOf wants the devices to reach over so many rows and columns more than one.
func boxOf(rows, cols int) string {
	const side = "devices.map(d, d.attributes['mla.example.com'].%[1]s).max() - devices.map(d, d.attributes['mla.example.com'].%[1]s).min() == %[2]d"
	return fmt.Sprintf(side, "row", rows) + " && " + fmt.Sprintf(side, "col", cols)
}
