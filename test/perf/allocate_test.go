// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/topology"
)

const (
	driver   = "mla.example.com"
	nodeName = "node"

	ringExpression = "devices.map(d, d.attributes['mla.example.com'].index).max() - " +
		"devices.map(d, d.attributes['mla.example.com'].index).min() == %d"
	gridExpression = "devices.all(d, devices.filter(o, d != o && (" +
		"d.attributes['mla.example.com'].row == o.attributes['mla.example.com'].row && " +
		"(d.attributes['mla.example.com'].col == o.attributes['mla.example.com'].col + 1 || d.attributes['mla.example.com'].col == o.attributes['mla.example.com'].col - 1) || " +
		"d.attributes['mla.example.com'].col == o.attributes['mla.example.com'].col && " +
		"(d.attributes['mla.example.com'].row == o.attributes['mla.example.com'].row + 1 || d.attributes['mla.example.com'].row == o.attributes['mla.example.com'].row - 1)" +
		")).size() >= 2)"
)

// features are those that are on by default in Kubernetes 1.37, so that upstream
// uses its default variant.
var features = structured.Features{
	AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true,
	FractionalCapacityRange: true, PartitionableDevices: true, PrioritizedList: true,
}

type classes struct{ class *resourceapi.DeviceClass }

func (c classes) List() ([]*resourceapi.DeviceClass, error) {
	return []*resourceapi.DeviceClass{c.class}, nil
}
func (c classes) Get(string) (*resourceapi.DeviceClass, error) { return c.class, nil }

var class = classes{&resourceapi.DeviceClass{
	ObjectMeta: metav1.ObjectMeta{Name: driver},
	Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{
		{CEL: &resourceapi.CELDeviceSelector{Expression: "device.driver == '" + driver + "'"}},
	}},
}}

// newAllocator is what the implementations have in common.
type newAllocator func(context.Context, structured.AllocatedState, []*resourceapi.ResourceSlice, *dracel.Cache) (structured.Allocator, error)

func upstream(ctx context.Context, state structured.AllocatedState, slices []*resourceapi.ResourceSlice, cache *dracel.Cache) (structured.Allocator, error) {
	return structured.NewAllocator(ctx, features, state, class, slices, cache)
}

func celset(ctx context.Context, state structured.AllocatedState, slices []*resourceapi.ResourceSlice, cache *dracel.Cache) (structured.Allocator, error) {
	return allocator.NewAllocator(ctx, features, state, class, slices, cache)
}

func slicesOf(b *testing.B, t topology.Topology, err error) []*resourceapi.ResourceSlice {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	slices, err := t.ResourceSlices(nodeName)
	if err != nil {
		b.Fatal(err)
	}
	return slices
}

func claim(count int) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim"},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{
				Name: "mla",
				Exactly: &resourceapi.ExactDeviceRequest{
					DeviceClassName: driver,
					AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
					Count:           int64(count),
				},
			}},
		}},
	}
}

func constrained(b *testing.B, count int, expression string) *resourceapi.ResourceClaim {
	b.Helper()
	raw, err := json.Marshal(v1alpha1.CELDeviceConstraint{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind},
		Name:       "shape",
		Expression: expression,
	})
	if err != nil {
		b.Fatal(err)
	}
	c := claim(count)
	c.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{
		MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(v1alpha1.AttributeDomain + "/shape")),
	}}
	c.Spec.Devices.Config = []resourceapi.DeviceClaimConfiguration{{
		DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
			Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: raw},
		}},
	}}
	return c
}

// benchmark allocates the claim on one node, again and again; want tells whether
// there is a solution.
func benchmark(b *testing.B, newAllocator newAllocator, slices []*resourceapi.ResourceSlice, c *resourceapi.ResourceClaim, want bool) {
	ctx := b.Context()
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	a, err := newAllocator(ctx, structured.AllocatedState{}, slices, dracel.NewCache(10, dracel.Features{EnableConsumableCapacity: true}))
	if err != nil {
		b.Fatal(err)
	}
	claims := []*resourceapi.ResourceClaim{c}
	b.ReportAllocs()
	for b.Loop() {
		results, err := a.Allocate(ctx, node, claims)
		if err != nil {
			b.Fatal(err)
		}
		if got := len(results) == len(claims); got != want {
			b.Fatalf("allocated: %v, want %v", got, want)
		}
	}
}

// BenchmarkPlainClaim: a count and nothing else, beside upstream.
func BenchmarkPlainClaim(b *testing.B) {
	ring, err := topology.NewRing(topology.Family{Driver: driver, Prefix: "mla"}, 8)
	slices := slicesOf(b, ring, err)
	for _, count := range []int{1, 2, 4, 8} {
		for _, implementation := range []struct {
			name string
			new  newAllocator
		}{{"upstream", upstream}, {"celset", celset}} {
			b.Run(fmt.Sprintf("devices=8/count=%d/allocator=%s", count, implementation.name), func(b *testing.B) {
				benchmark(b, implementation.new, slices, claim(count), true)
			})
		}
	}
}

// BenchmarkConstraint: the expressions of KEP-5254, found at once and found
// nowhere.
func BenchmarkConstraint(b *testing.B) {
	ring, err := topology.NewRing(topology.Family{Driver: driver, Prefix: "mla"}, 8)
	ringSlices := slicesOf(b, ring, err)
	mesh, err := topology.NewMesh(topology.Family{Driver: driver, Prefix: "mla"}, 4, 4)
	meshSlices := slicesOf(b, mesh, err)
	for _, test := range []struct {
		name       string
		slices     []*resourceapi.ResourceSlice
		expression string
		want       bool
	}{
		{"shape=ring/devices=8/count=4/fits=yes", ringSlices, fmt.Sprintf(ringExpression, 3), true},
		{"shape=ring/devices=8/count=4/fits=no", ringSlices, fmt.Sprintf(ringExpression, 2), false},
		{"shape=grid/devices=16/count=4/fits=yes", meshSlices, gridExpression, true},
		{"shape=grid/devices=16/count=4/fits=no", meshSlices, gridExpression + " && devices.size() == 3", false},
	} {
		b.Run(test.name, func(b *testing.B) {
			benchmark(b, celset, test.slices, constrained(b, 4, test.expression), test.want)
		})
	}
}
