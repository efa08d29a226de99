// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/topology"
)

const driver = "mla.example.com"

// classes are by name.
type classes map[string]*resourceapi.DeviceClass

func (c classes) List() ([]*resourceapi.DeviceClass, error) { return nil, nil }

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if class, ok := c[name]; ok {
		return class, nil
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclasses"), name)
}

// node has the devices of the problems in the tests.
var node = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}

// problem is about devices of one topology and claims that want some of them.
func problem(t testing.TB, wired topology.Topology, claims ...*resourceapi.ResourceClaim) *explain.Problem {
	t.Helper()
	slices, err := wired.ResourceSlices(node.Name)
	require.NoError(t, err)
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: driver}}
	class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: "device.driver == '" + driver + "'"}}}
	return &explain.Problem{Problem: allocator.Problem{
		Claims: claims, Classes: classes{driver: class}, Slices: slices,
		Selectors: dracel.NewCache(10, dracel.Features{}),
		Options:   []allocator.Option{allocator.WithCache(allocator.NewCache())},
	}}
}

func ring(t testing.TB, n int) topology.Topology {
	t.Helper()
	wired, err := topology.NewRing(topology.Family{Driver: driver, Prefix: "mla"}, n)
	require.NoError(t, err)
	return wired
}

// wanting is a claim for a number of devices.
func wanting(name string, count int64) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{
		Name:    "mla",
		Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: driver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count},
	}}
	return claim
}

// such adds a CEL constraint to a claim.
func such(claim *resourceapi.ResourceClaim, name, expression string) *resourceapi.ResourceClaim {
	raw, err := json.Marshal(&v1alpha1.CELDeviceConstraint{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind}, Name: name, Expression: expression,
	})
	if err != nil {
		panic(err)
	}
	claim.Spec.Devices.Constraints = append(claim.Spec.Devices.Constraints, resourceapi.DeviceConstraint{
		MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(v1alpha1.AttributeDomain + "/" + name)),
	})
	claim.Spec.Devices.Config = append(claim.Spec.Devices.Config, resourceapi.DeviceClaimConfiguration{
		DeviceConfiguration: configuration(raw),
	})
	return claim
}

// configuration is one of ours.
func configuration(raw []byte) resourceapi.DeviceConfiguration {
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: raw},
	}}
}

// matching adds an attribute constraint to a claim.
func matching(claim *resourceapi.ResourceClaim, attribute string) *resourceapi.ResourceClaim {
	claim.Spec.Devices.Constraints = append(claim.Spec.Devices.Constraints, resourceapi.DeviceConstraint{
		MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(attribute)),
	})
	return claim
}

// owning is a claim that has devices of the node.
func owning(name string, devices ...int) *resourceapi.ResourceClaim {
	claim := wanting(name, int64(len(devices)))
	claim.Status.Allocation = &resourceapi.AllocationResult{}
	for _, i := range devices {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Request: "mla", Driver: driver, Pool: node.Name, Device: fmt.Sprintf("mla-%d", i),
		})
	}
	return claim
}
