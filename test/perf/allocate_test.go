// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/internal/testing/shape"
	"github.com/celset/celset/internal/topology"
)

const (
	driver   = "mla.example.com"
	nodeName = "node"
)

// features are those that are on by default in Kubernetes 1.37, so that upstream
// uses its default variant.
var features = structured.Features{
	AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true,
	FractionalCapacityRange: true, PartitionableDevices: true, PrioritizedList: true,
}

var class = classList(ofMesh(1, 1, 1, "").DeviceClasses())

// newAllocator is what the implementations have in common.
type newAllocator func(context.Context, structured.AllocatedState, []*resourceapi.ResourceSlice, *dracel.Cache) (structured.Allocator, error)

var implementations = []struct {
	name string
	new  newAllocator
}{
	{"upstream", func(ctx context.Context, state structured.AllocatedState, slices []*resourceapi.ResourceSlice, cache *dracel.Cache) (structured.Allocator, error) {
		return structured.NewAllocator(ctx, features, state, class, slices, cache)
	}},
	{"celset", func(ctx context.Context, state structured.AllocatedState, slices []*resourceapi.ResourceSlice, cache *dracel.Cache) (structured.Allocator, error) {
		return allocator.NewAllocator(ctx, features, state, class, slices, cache)
	}},
}

// ofMesh is a claim for so many devices of a mesh that satisfy an expression, where all are free.
func ofMesh(rows, cols, count int, expression string) shape.Scenario {
	mesh, err := topology.NewMesh(topology.Family{Driver: driver, Prefix: "mla"}, rows, cols)
	if err != nil {
		panic(err) // the sizes are constants
	}
	return shape.Scenario{Topology: mesh, Requests: []shape.Request{{Name: "mla", Driver: driver, Count: count}}, Expression: expression}
}

// asked is one node where all devices are free, and the claim.
func asked(tb testing.TB, s shape.Scenario) (*fleet, []*resourceapi.ResourceClaim) {
	tb.Helper()
	claim, err := s.Claim()
	require.NoError(tb, err)
	return newHardware(tb, s, 1).occupied([]shape.Set{0}), []*resourceapi.ResourceClaim{claim}
}

// claim asks for so many devices and nothing else.
func claim(count int) *resourceapi.ResourceClaim { return ofMesh(1, 1, count, "").PlainClaim() }

// benchmark has each implementation allocate the claim on one node, again and again; want tells whether
// there is a solution.
func benchmark(b *testing.B, name string, slices []*resourceapi.ResourceSlice, c *resourceapi.ResourceClaim, want bool) {
	for _, implementation := range implementations {
		b.Run(name+"/allocator="+implementation.name, func(b *testing.B) {
			node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
			a, err := implementation.new(b.Context(), structured.AllocatedState{}, slices, dracel.NewCache(10, dracel.Features{EnableConsumableCapacity: true}))
			require.NoError(b, err)
			claims := []*resourceapi.ResourceClaim{c}
			b.ReportAllocs()
			for b.Loop() {
				results, err := a.Allocate(b.Context(), node, claims)
				if got := len(results) == len(claims); err != nil || got != want {
					b.Fatalf("allocated: %v, want %v: %v", got, want, err)
				}
			}
		})
	}
}

// BenchmarkPlainClaim: a count and nothing else, beside upstream.
func BenchmarkPlainClaim(b *testing.B) {
	slices, err := ofMesh(1, 8, 1, "").ResourceSlices(nodeName)
	require.NoError(b, err)
	for _, count := range []int{1, 2, 4, 8} {
		benchmark(b, fmt.Sprintf("devices=8/count=%d", count), slices, claim(count), true)
	}
}
