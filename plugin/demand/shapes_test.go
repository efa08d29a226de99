// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demand

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/internal/testing/plugintest"
)

// classes is a lister that maps names to classes.
type classes map[string]*resourceapi.DeviceClass

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if class := c[name]; class != nil {
		return class, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "deviceclasses"}, name)
}

// about makes the last constraint of a claim apply only to the given requests.
func about(c *resourceapi.ResourceClaim, requests ...string) *resourceapi.ResourceClaim {
	c.Spec.Devices.Constraints[len(c.Spec.Devices.Constraints)-1].Requests = requests
	return c
}

func TestShapesOfClaims(t *testing.T) {
	known := classes{"gpu": plugintest.ClassDefining("gpu", "ring"), "held": plugintest.ClassDefining("held", "default"), "broken": plugintest.ClassDefining("broken", "not a name")}
	held := func(count int) allocator.Shape {
		return allocator.Shape{Class: "held", Constraint: "default", Count: count}
	}
	for name, test := range map[string]struct {
		claim *resourceapi.ResourceClaim
		want  []allocator.Shape
	}{
		"twice the same": {about(plugintest.Reference(about(plugintest.Reference(plugintest.ClaimForClass("gpu", 4, 4), "ring"), "r0"), "ring"), "r1"), []allocator.Shape{{Class: "gpu", Constraint: "ring", Count: 4}}},
		"at most four":   {plugintest.ClaimForClass("held", 2, 3, 4, 5, 6, 7), []allocator.Shape{held(2), held(3), held(4), held(5)}},
		"no class":       {plugintest.Reference(plugintest.ClaimForClass("nowhere", 4), "ring"), nil},
		"malformed":      {plugintest.Reference(plugintest.ClaimForClass("broken", 4), "ring"), nil},
		"far too many":   {plugintest.Reference(plugintest.ClaimForClass("gpu", 1<<62, 1<<62), "ring"), nil},
		"negative":       {plugintest.Reference(plugintest.ClaimForClass("gpu", -4), "ring"), nil},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, allocator.ShapesOf(test.claim, known)) })
	}
}

// repeated adds n equal claims of a namespace.
func (a *Shapes) repeated(namespace string, n int, shapes ...allocator.Shape) {
	for range n {
		a.add(namespace, shapes)
	}
}

func shape(class string, count int) allocator.Shape {
	return allocator.Shape{Class: class, Constraint: "ring", Count: count}
}

func TestMostAskedShapes(t *testing.T) {
	a := New()
	require.Nil(t, a.Most(), "the allocator has shapes of its own then")
	a.repeated("n", 9, shape("b", 2))
	a.repeated("n", 3, shape("b", 8), shape("b", 4))
	a.repeated("n", 1, shape("a", 16))
	a.add("n", nil)
	want := []allocator.Shape{shape("b", 2), shape("b", 8), shape("b", 4), shape("a", 16)}
	require.Equal(t, want, a.Most())
	known := a.most
	a.repeated("m", 6, shape("b", 2))
	require.Same(t, &known[0], &a.Most()[0], "15 are not much more than 9")
	a.repeated("m", 1, shape("b", 4))
	require.Equal(t, []allocator.Shape{shape("b", 2), shape("b", 4), shape("b", 8), shape("a", 16)}, a.Most())
	for i := range 20 {
		a.repeated("l", 1, shape("b", 20+i))
	}
	require.Equal(t, []allocator.Shape{
		shape("b", 2), shape("b", 4), shape("b", 8), shape("b", 39), shape("b", 38), shape("b", 37), shape("b", 36), shape("b", 35), shape("a", 16),
	}, a.Most())
}

// TestOldShapesAreForgotten checks which claim is forgotten. If the namespace has its maximum, its own oldest claim is
// forgotten. If the total is at its maximum, the oldest claim of all namespaces is forgotten.
func TestOldShapesAreForgotten(t *testing.T) {
	a := New()
	a.repeated("quiet", 2, shape("gpu", 4))
	a.repeated("loud", 10*maxAskedClaims, shape("gpu", 32))
	require.Equal(t, 2+maxAskedClaimsOfNamespace, a.claims.Len())
	require.Equal(t, map[allocator.Shape]int{shape("gpu", 4): 2, shape("gpu", 32): maxAskedClaimsOfNamespace}, a.counts)
	a.repeated("loud", maxAskedClaimsOfNamespace, shape("gpu", 8))
	require.Equal(t, map[allocator.Shape]int{shape("gpu", 4): 2, shape("gpu", 8): maxAskedClaimsOfNamespace}, a.counts)
	require.Equal(t, []allocator.Shape{shape("gpu", 8), shape("gpu", 4)}, a.Most())

	for i := range maxAskedClaims {
		a.repeated(fmt.Sprint("many-", i), 1, shape("gpu", 16))
	}
	require.Equal(t, maxAskedClaims, a.claims.Len())
	require.Len(t, a.byNamespace, maxAskedClaims)
	require.Equal(t, []allocator.Shape{shape("gpu", 16)}, a.Most())
}

// TestClaimsOfTheClusterAreAsked checks that claims that exist at the start and later claims are counted. The classes may be
// delivered after the claims.
func TestClaimsOfTheClusterAreAsked(t *testing.T) {
	c := plugintest.ClassDefining("gpu", "ring")
	first := plugintest.Reference(plugintest.ClaimForClass("gpu", 4), "ring")
	ctx, h := plugintest.NewHandle(t, c, first)
	asked := New()
	require.NoError(t, asked.Watch(ctx, h.Factory))
	h.Start(ctx, t, c, first)
	require.Eventually(t, func() bool { return len(asked.Most()) == 1 }, time.Minute, time.Millisecond)
	second := plugintest.Reference(plugintest.ClaimForClass("gpu", 2), "ring")
	second.Name = "second"
	_, err := h.Client.ResourceV1().ResourceClaims(second.Namespace).Create(ctx, second, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(asked.Most()) == 2 }, time.Minute, time.Millisecond)
	require.Equal(t, []allocator.Shape{shape("gpu", 4), shape("gpu", 2)}, asked.Most())
}
