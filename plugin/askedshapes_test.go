// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// classes are found by name.
type classes map[string]*resourceapi.DeviceClass

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if class := c[name]; class != nil {
		return class, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "deviceclasses"}, name)
}

// classDefining is a class that defines constraints, by default if their name says so.
func classDefining(name string, constraints ...string) *resourceapi.DeviceClass {
	c := class()
	c.Name = name
	for _, constraint := range constraints {
		enforcement := v1alpha1.EnforcementOnReference
		if constraint == "default" {
			enforcement = v1alpha1.EnforcementAlways
		}
		c.Spec.Config = append(c.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: resourceapi.DeviceConfiguration{
			Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: fmt.Appendf(nil,
				`{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": %q, "enforcement": %q, "expression": "true"}`,
				constraint, enforcement)}},
		}})
	}
	return c
}

// asking is a claim for so many devices of a class each.
func asking(class string, counts ...int64) *resourceapi.ResourceClaim {
	c := claim(0)
	c.Spec.Devices.Requests = nil
	for i, n := range counts {
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, resourceapi.DeviceRequest{
			Name:    fmt.Sprint("r", i),
			Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: n},
		})
	}
	return c
}

// about limits the last constraint to requests.
func about(c *resourceapi.ResourceClaim, requests ...string) *resourceapi.ResourceClaim {
	c.Spec.Devices.Constraints[len(c.Spec.Devices.Constraints)-1].Requests = requests
	return c
}

func TestShapesOfClaims(t *testing.T) {
	known := classes{"gpu": classDefining("gpu", "ring"), "held": classDefining("held", "default"), "broken": classDefining("broken", "not a name")}
	held := func(count int) allocator.Shape {
		return allocator.Shape{Class: "held", Constraint: "default", Count: count}
	}
	for name, test := range map[string]struct {
		claim *resourceapi.ResourceClaim
		want  []allocator.Shape
	}{
		"twice the same": {about(reference(about(reference(asking("gpu", 4, 4), "ring"), "r0"), "ring"), "r1"), []allocator.Shape{{Class: "gpu", Constraint: "ring", Count: 4}}},
		"at most four":   {asking("held", 2, 3, 4, 5, 6, 7), []allocator.Shape{held(2), held(3), held(4), held(5)}},
		"no class":       {reference(asking("nowhere", 4), "ring"), nil},
		"malformed":      {reference(asking("broken", 4), "ring"), nil},
		"far too many":   {reference(asking("gpu", 1<<62, 1<<62), "ring"), nil},
		"negative":       {reference(asking("gpu", -4), "ring"), nil},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, allocator.ShapesOf(test.claim, known)) })
	}
}

// repeated has a namespace ask n times.
func (a *askedShapes) repeated(namespace string, n int, shapes ...allocator.Shape) {
	for range n {
		a.add(namespace, shapes)
	}
}

func shape(class string, count int) allocator.Shape {
	return allocator.Shape{Class: class, Constraint: "ring", Count: count}
}

func TestMostAskedShapes(t *testing.T) {
	a := newAskedShapes()
	require.Nil(t, a.shapes(), "the allocator has shapes of its own then")
	a.repeated("n", 9, shape("b", 2))
	a.repeated("n", 3, shape("b", 8), shape("b", 4))
	a.repeated("n", 1, shape("a", 16))
	a.add("n", nil)
	want := []allocator.Shape{shape("b", 2), shape("b", 8), shape("b", 4), shape("a", 16)}
	require.Equal(t, want, a.shapes())
	known := a.most
	a.repeated("m", 6, shape("b", 2))
	require.Same(t, &known[0], &a.shapes()[0], "15 are not much more than 9")
	a.repeated("m", 1, shape("b", 4))
	require.Equal(t, []allocator.Shape{shape("b", 2), shape("b", 4), shape("b", 8), shape("a", 16)}, a.shapes())
	for i := range 20 {
		a.repeated("l", 1, shape("b", 20+i))
	}
	require.Equal(t, []allocator.Shape{
		shape("b", 2), shape("b", 4), shape("b", 8), shape("b", 39), shape("b", 38), shape("b", 37), shape("b", 36), shape("b", 35), shape("a", 16),
	}, a.shapes())
}

// One namespace has a part of what is remembered, of which its oldest claims are forgotten; when
// all is in use, the oldest of all are.
func TestOldShapesAreForgotten(t *testing.T) {
	a := newAskedShapes()
	a.repeated("quiet", 2, shape("gpu", 4))
	a.repeated("loud", 10*maxAskedClaims, shape("gpu", 32))
	require.Equal(t, 2+maxAskedClaimsOfNamespace, a.claims.Len())
	require.Equal(t, map[allocator.Shape]int{shape("gpu", 4): 2, shape("gpu", 32): maxAskedClaimsOfNamespace}, a.counts)
	a.repeated("loud", maxAskedClaimsOfNamespace, shape("gpu", 8))
	require.Equal(t, map[allocator.Shape]int{shape("gpu", 4): 2, shape("gpu", 8): maxAskedClaimsOfNamespace}, a.counts)
	require.Equal(t, []allocator.Shape{shape("gpu", 8), shape("gpu", 4)}, a.shapes())

	for i := range maxAskedClaims {
		a.repeated(fmt.Sprint("many-", i), 1, shape("gpu", 16))
	}
	require.Equal(t, maxAskedClaims, a.claims.Len())
	require.Len(t, a.byNamespace, maxAskedClaims)
	require.Equal(t, []allocator.Shape{shape("gpu", 16)}, a.shapes())
}

// TestClaimsOfTheClusterAreAsked: those that are there when the scheduler starts, and those that
// come. The classes may come later than the claims.
func TestClaimsOfTheClusterAreAsked(t *testing.T) {
	c := classDefining("gpu", "ring")
	first := reference(asking("gpu", 4), "ring")
	ctx, h := newHandle(t, c, first)
	asked := newAskedShapes()
	require.NoError(t, asked.watch(ctx, h.factory))
	h.start(ctx, t, c, first)
	require.Eventually(t, func() bool { return len(asked.shapes()) == 1 }, waitFor, tick)
	second := reference(asking("gpu", 2), "ring")
	second.Name = "second"
	_, err := h.client.ResourceV1().ResourceClaims(second.Namespace).Create(ctx, second, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(asked.shapes()) == 2 }, waitFor, tick)
	require.Equal(t, []allocator.Shape{shape("gpu", 4), shape("gpu", 2)}, asked.shapes())
}
