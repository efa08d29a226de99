// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
)

const driver = "mla.example.com"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type classes []*resourceapi.DeviceClass

func (c classes) List() ([]*resourceapi.DeviceClass, error) { return c, nil }

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range c {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclasses"), name)
}

// aligned returns a class with constraints for blocks that begin at a multiple of their size.
func aligned(name string, constraints ...string) *resourceapi.DeviceClass {
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, constraint := range constraints {
		class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: resourceapi.DeviceConfiguration{
			Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: "celset.dev", Parameters: runtime.RawExtension{Raw: fmt.Appendf(nil, `{
				"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": %q,
				"expression": "devices.all(d, d.attributes['mla.example.com'].index / devices.size() == devices[0].attributes['mla.example.com'].index / devices.size())"
			}`, constraint)}},
		}})
	}
	return class
}

// clusterOf returns nodes with eight devices each, mla-0 to mla-7, the class blocks, and the given claims.
func clusterOf(nodes int, claims ...*resourceapi.ResourceClaim) (allocator.Problem, []*v1.Node) {
	problem := allocator.Problem{Classes: classes{aligned("blocks", "block")}, Allocated: claims, Selectors: dracel.NewCache(10, dracel.Features{})}
	var all []*v1.Node
	for n := range nodes {
		name := fmt.Sprintf("node-%d", n+1)
		all = append(all, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, NodeName: ptr.To(name), Pool: resourceapi.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1},
		}}
		for i := range 8 {
			slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{
				Name: fmt.Sprintf("mla-%d", i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"index": {IntValue: ptr.To(int64(i))}},
			})
		}
		problem.Slices = append(problem.Slices, slice)
	}
	return problem, all
}

// wants returns a claim for a block of count devices.
func wants(name string, count int64) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "r", Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: "blocks", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
	}}}
	if count > 1 {
		claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: ptr.To(resourceapi.FullyQualifiedName("celset.dev/block"))}}
	}
	return claim
}

// has returns a claim that has devices of a node.
func has(name, node string, devices ...int) *resourceapi.ResourceClaim {
	claim := wants(name, int64(len(devices)))
	claim.Status.Allocation = &resourceapi.AllocationResult{}
	for _, i := range devices {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Request: "r", Driver: driver, Pool: node, Device: fmt.Sprintf("mla-%d", i),
		})
	}
	return claim
}

// of adds pods to the consumers of a claim.
func of(claim *resourceapi.ResourceClaim, pods ...string) *resourceapi.ResourceClaim {
	for _, pod := range pods {
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: pod})
	}
	return claim
}

func reportOn(t require.TestingT, problem allocator.Problem, nodes []*v1.Node, options Options) *Report {
	report, err := New(context.Background(), problem, nodes, options)
	require.NoError(t, err)
	return report
}
