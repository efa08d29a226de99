// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"
)

const (
	sharedDevices = 4 // a node
	sharesANode   = 8 // claims of two devices each
)

// sharedCluster has nodes with devices that are shared, and used up but for the last node.
func sharedCluster(nodes int) (objects []runtime.Object, infos []fwk.NodeInfo) {
	share, policy := resource.MustParse("2500M"), &resourceapi.CapacityRequestPolicy{
		Default:    ptr.To(resource.MustParse("1M")),
		ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: ptr.To(resource.MustParse("1M")), Step: ptr.To(resource.MustParse("8"))},
	}
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		s := slice()
		s.Name, s.Spec.Pool.Name, s.Spec.NodeName = name, name, ptr.To(name)
		for d := range int64(sharedDevices) {
			s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{
				Name: deviceName(d), AllowMultipleAllocations: ptr.To(true),
				Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"index": {IntValue: ptr.To(d)}},
				Capacity:   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"bandwidth": {Value: resource.MustParse("10G"), RequestPolicy: policy}},
			})
		}
		objects = append(objects, s)
		for n := range sharesANode {
			if i == nodes-1 {
				break
			}
			inUse := sharing()
			inUse.Name = fmt.Sprintf("in-use-%s-%d", name, n)
			inUse.UID = types.UID(inUse.Name)
			inUse.Status.Allocation = &resourceapi.AllocationResult{}
			for _, d := range []int64{int64(n%2) * 2, int64(n%2)*2 + 1} {
				inUse.Status.Allocation.Devices.Results = append(inUse.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
					Request: "mla", Driver: driver, Pool: name, Device: deviceName(d), ShareID: ptr.To(types.UID(fmt.Sprint(inUse.Name, d))),
					ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{"bandwidth": share},
				})
			}
			objects = append(objects, inUse)
		}
		info := framework.NewNodeInfo()
		info.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		infos = append(infos, info)
	}
	return objects, infos
}

// sharing wants a share of two different devices.
func sharing() *resourceapi.ResourceClaim {
	c := claim(2)
	c.Spec.Devices.Requests[0].Exactly.Capacity = &resourceapi.CapacityRequirements{
		Requests: map[resourceapi.QualifiedName]resource.Quantity{"bandwidth": resource.MustParse("2500M")},
	}
	c.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{DistinctAttribute: ptr.To(resourceapi.FullyQualifiedName(driver + "/index"))}}
	return c
}

// BenchmarkCycleOfShares is the plugin in a scheduling cycle on a cluster whose shared
// devices are used up but for one node. It needs no CEL constraint: ours is used for all.
func BenchmarkCycleOfShares(b *testing.B) {
	for _, of := range []string{"Constrained", "All"} {
		b.Run("allocator="+of, func(b *testing.B) {
			objects, infos := sharedCluster(1000)
			enabled := features()
			enabled.EnableDRAConsumableCapacity = true
			args := &runtime.Unknown{Raw: fmt.Appendf(nil, `{"allocator": %q}`, of)}
			if found := measureCycles(b, args, enabled, append(objects, class(), sharing()), infos, func(nodes int) int { return nodes }); found != 1 {
				b.Fatal(found, "nodes fit")
			}
		})
	}
}
