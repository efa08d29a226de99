// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	compbase "k8s.io/component-base/metrics"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/plugin/metrics"
)

// requestPolicies maps capacities to policies. The amounts are not in Kubernetes' canonical format, so parsing caches no text
// in the quantities. Formatting a shared quantity later would write that cache, and the race detector would report the write.
var requestPolicies = map[resourceapi.QualifiedName]*resourceapi.CapacityRequestPolicy{
	"memory": {Default: amount("1.5Gi"), ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: amount("1.5Gi"), Max: amount("7.5Gi"), Step: amount("0.5Gi")}},
	"cores":  {Default: amount("0.5"), ValidValues: []resource.Quantity{*amount("0.5"), *amount("1.50"), *amount("2.0")}},
	"large":  {Default: amount("1.5Gi"), ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: amount("0.5Gi"), Max: amount("123456789012345678901")}},
}

func amount(text string) *resource.Quantity { return ptr.To(resource.MustParse(text)) }

// sharedSlices returns the slices of some nodes, with devices that have the policies.
func sharedSlices(nodes int) (objects []runtime.Object, infos []fwk.NodeInfo) {
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		s := slice(0, 1, 2, 3)
		s.Name, s.Spec.Pool.Name, s.Spec.NodeName = name, name, &name
		for d := range s.Spec.Devices {
			device := &s.Spec.Devices[d]
			device.AllowMultipleAllocations = ptr.To(d%2 == 0)
			// The slot attribute has three values, so every third node is equivalent.
			device.Attributes["slot"] = resourceapi.DeviceAttribute{IntValue: ptr.To(int64(i % 3))}
			device.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{}
			for capacity, policy := range requestPolicies {
				device.Capacity[capacity] = resourceapi.DeviceCapacity{Value: resource.MustParse("12.5Gi"), RequestPolicy: policy.DeepCopy()}
			}
		}
		objects = append(objects, s)
		infos = append(infos, node(name))
	}
	return objects, infos
}

// sharingPod returns a pod of the namespace, and its claim.
func sharingPod(t testing.TB, namespace, expression string) (*v1.Pod, *resourceapi.ResourceClaim) {
	c := constrain(t, claim(2), "shape", expression)
	c.Namespace, c.UID = namespace, types.UID(namespace)
	c.Spec.Devices.Requests[0].Exactly.Capacity = &resourceapi.CapacityRequirements{
		Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("1.6Gi"), "cores": resource.MustParse("1.20")},
	}
	p := pod()
	p.Namespace, p.UID = namespace, types.UID("pod-"+namespace)
	return p, c
}

// TestFiltersWriteToNothing runs Filter for nodes and pods in parallel, all on the informers' shared objects. The race detector
// must find no writes, and the objects must be unchanged at the end.
func TestFiltersWriteToNothing(t *testing.T) {
	const nodes, cycles = 12, 4
	objects, infos := sharedSlices(nodes)
	// Some devices of the first two nodes are in use.
	for i := range 2 {
		inUse := owned(fmt.Sprint("in-use-", i), 0, 2)
		inUse.UID = types.UID(inUse.Name)
		for r := range inUse.Status.Allocation.Devices.Results {
			result := &inUse.Status.Allocation.Devices.Results[r]
			result.Pool, result.ShareID = infos[i].Node().Name, ptr.To(types.UID(fmt.Sprint("share-", i, r)))
			result.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("2.5Gi")}
		}
		objects = append(objects, inUse)
	}
	objects = append(objects, class())
	var pods []*v1.Pod
	for i, expression := range []string{
		ring2, ring2, // the same, of two namespaces
		"devices.all(d, d.capacity['mla.example.com'].memory.isGreaterThan(quantity('1.5Gi'))) && " + ring2,
		"devices.slice(0, 1).map(d, d.attributes['mla.example.com'].slot)[0] == 1", // propagation finds nothing before the set is complete
		"devices.map(d, d.attributes['mla.example.com'].index).sum() > 9",          // never
	} {
		p, c := sharingPod(t, fmt.Sprint("team-", i), expression)
		pods, objects = append(pods, p), append(objects, c)
	}
	measured, err := metrics.New(compbase.NewKubeRegistry(), time.Now)
	require.NoError(t, err)
	ctx, h := newHandle(t, objects...)
	enabled := features()
	enabled.EnableDRAConsumableCapacity = true
	pl, err := newPlugin(ctx, nil, h, enabled, true, measured, newShared())
	require.NoError(t, err)
	h.Start(ctx, t, objects...)

	shared := sharedObjects(t, pl)
	var before []runtime.Object
	for _, object := range shared {
		before = append(before, object.DeepCopyObject())
	}
	var running sync.WaitGroup
	fits := make([][cycles]int, len(pods))
	for i, p := range pods {
		for n := range cycles {
			running.Go(func() { fits[i][n] = filterAll(t, pl, p, infos) })
		}
	}
	running.Wait()
	require.Equal(t, [][cycles]int{{12, 12, 12, 12}, {12, 12, 12, 12}, {12, 12, 12, 12}, {4, 4, 4, 4}, {}}, fits)
	require.Len(t, sharedObjects(t, pl), len(shared))
	for i, object := range sharedObjects(t, pl) {
		require.Same(t, shared[i], object, "the informers have the same objects still")
		require.True(t, reflect.DeepEqual(before[i], object), "%T was written to", object)
	}
}

// filterAll runs a scheduling cycle with all nodes in parallel. It returns the number of nodes where the pod fits.
func filterAll(t *testing.T, pl *DynamicResourcesCEL, p *v1.Pod, infos []fwk.NodeInfo) int {
	ctx, state := t.Context(), framework.NewCycleState()
	if _, status := pl.PreFilter(ctx, state, p, nil); !status.IsSuccess() {
		t.Error(status)
		return -1
	}
	statuses := make([]*fwk.Status, len(infos))
	var running sync.WaitGroup
	for i, info := range infos {
		running.Go(func() { statuses[i] = pl.Filter(ctx, state, p, info) })
	}
	running.Wait()
	fits := 0
	for _, status := range statuses {
		switch {
		case status.IsSuccess():
			fits++
		case status.Code() != fwk.UnschedulableAndUnresolvable:
			t.Error(status)
		}
	}
	return fits
}

// sharedObjects returns the objects of the scheduler's listers in a fixed order.
func sharedObjects(t *testing.T, pl *DynamicResourcesCEL) []runtime.Object {
	t.Helper()
	var all []runtime.Object
	listed, err := pl.resolver.Manager.ResourceSlices().ListWithDeviceTaintRules()
	require.NoError(t, err)
	for _, s := range listed {
		all = append(all, s)
	}
	claims, err := pl.resolver.Manager.ResourceClaims().List()
	require.NoError(t, err)
	for _, c := range claims {
		all = append(all, c)
	}
	classes, err := pl.resolver.Manager.DeviceClasses().List()
	require.NoError(t, err)
	for _, c := range classes {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b runtime.Object) int { return strings.Compare(nameOf(a), nameOf(b)) })
	return all
}

func nameOf(object runtime.Object) string {
	named := object.(metav1.Object)
	return fmt.Sprintf("%T %s/%s", object, named.GetNamespace(), named.GetName())
}
