// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/clusterstate"
)

// owning is a claim with devices of one pool.
func owning(name string, results ...resourceapi.DeviceRequestAllocationResult) *resourceapi.ResourceClaim {
	for i := range results {
		results[i].Driver, results[i].Pool, results[i].Request = "d", "p", "r"
	}
	claim := &resourceapi.ResourceClaim{ObjectMeta: named("ns", name)}
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: results}}
	return claim
}

func id(device string) structured.DeviceID { return structured.MakeDeviceID("d", "p", device) }

func TestOwners(t *testing.T) {
	share := func(id types.UID, memory string) resourceapi.DeviceRequestAllocationResult {
		return resourceapi.DeviceRequestAllocationResult{
			Device: "shared", ShareID: ptr.To(id),
			ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)},
		}
	}
	state := clusterstate.New(&clusterstate.Objects{Claims: []*resourceapi.ResourceClaim{
		owning("whole", resourceapi.DeviceRequestAllocationResult{Device: "a"}),
		owning("half", share("1", "1Gi")),
		owning("other-half", share("2", "2Gi")),
		owning("admin", resourceapi.DeviceRequestAllocationResult{Device: "b", AdminAccess: ptr.To(true)}),
		{ObjectMeta: named("ns", "pending")},
	}})

	owners := state.Owners()
	require.Len(t, owners, 3)
	require.Equal(t, "half", owners[id("shared")][0].Claim.Name)
	require.Equal(t, "other-half", owners[id("shared")][1].Claim.Name)
	require.True(t, owners[id("shared")][0].Shared)
	require.True(t, owners[id("b")][0].AdminAccess)
	require.Equal(t, "r", owners[id("a")][0].Request)
}

func TestTaintRules(t *testing.T) {
	slice := &resourceapi.ResourceSlice{ObjectMeta: named("", "s"), Spec: resourceapi.ResourceSliceSpec{
		Driver: "d", Pool: resourceapi.ResourcePool{Name: "p"}, Devices: []resourceapi.Device{{Name: "a"}, {Name: "b"}},
	}}
	rule := func(name string, selector *resourceapi.DeviceTaintSelector) *resourceapi.DeviceTaintRule {
		return &resourceapi.DeviceTaintRule{ObjectMeta: named("", name), Spec: resourceapi.DeviceTaintRuleSpec{
			DeviceSelector: selector, Taint: resourceapi.DeviceTaint{Key: name, Effect: resourceapi.DeviceTaintEffectNoSchedule},
		}}
	}
	state := clusterstate.New(&clusterstate.Objects{
		Slices: []*resourceapi.ResourceSlice{slice},
		TaintRules: []*resourceapi.DeviceTaintRule{
			rule("all", &resourceapi.DeviceTaintSelector{}),
			rule("b", &resourceapi.DeviceTaintSelector{Driver: ptr.To("d"), Pool: ptr.To("p"), Device: ptr.To("b")}),
			rule("elsewhere", &resourceapi.DeviceTaintSelector{Pool: ptr.To("q")}),
			rule("none", nil),
		},
	})
	keys := func(device resourceapi.Device) (keys []string) {
		for _, taint := range device.Taints {
			keys = append(keys, taint.Key)
		}
		return keys
	}
	tainted := state.Slices(true)[0]
	require.Equal(t, []string{"all"}, keys(tainted.Spec.Devices[0]))
	require.Equal(t, []string{"all", "b"}, keys(tainted.Spec.Devices[1]))
	require.Empty(t, slice.Spec.Devices[0].Taints, "what was read is not changed")
	require.Same(t, slice, state.Slices(false)[0])
}

func TestNodesAndClasses(t *testing.T) {
	objects := &clusterstate.Objects{
		Classes: []*resourceapi.DeviceClass{{ObjectMeta: named("", "x")}},
		Slices: []*resourceapi.ResourceSlice{
			{Spec: resourceapi.ResourceSliceSpec{NodeName: ptr.To("node-2")}},
			{Spec: resourceapi.ResourceSliceSpec{NodeName: ptr.To("node-1")}},
			{Spec: resourceapi.ResourceSliceSpec{NodeName: ptr.To("node-2")}},
			{Spec: resourceapi.ResourceSliceSpec{AllNodes: ptr.To(true)}},
		},
	}
	state := clusterstate.New(objects)
	require.Equal(t, []string{"/node-1", "/node-2"}, names(state.Nodes()), "those that slices are for")
	_, err := state.ChosenNodes([]string{"node-3"})
	require.ErrorContains(t, err, `there is no node "node-3"`)
	chosen, err := state.ChosenNodes([]string{"node-2"})
	require.NoError(t, err)
	require.Equal(t, []string{"/node-2"}, names(chosen))

	objects.Nodes = []*corev1.Node{{ObjectMeta: named("", "only")}}
	require.Equal(t, []string{"/only"}, names(clusterstate.New(objects).Nodes()))

	_, err = state.Classes().Get("y")
	require.True(t, apierrors.IsNotFound(err))
	class, err := state.Classes().Get("x")
	require.NoError(t, err)
	all, err := state.Classes().List()
	require.NoError(t, err)
	require.Equal(t, []*resourceapi.DeviceClass{class}, all)
}
