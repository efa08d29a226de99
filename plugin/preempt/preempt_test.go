// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/celset/celset/allocator"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/internal/testing/plugintest"
	"github.com/celset/celset/plugin/cycle"
	"github.com/celset/celset/plugin/demand"
	"github.com/celset/celset/plugin/hold"
	"github.com/celset/celset/plugin/pendingwrites"
	"github.com/celset/celset/plugin/preparation"
)

// occupied is a node with low-priority pods that use all of its devices.
type occupied struct {
	node   *v1.Node
	slice  *resourceapi.ResourceSlice
	pods   []*v1.Pod
	claims []*resourceapi.ResourceClaim
}

// occupiedNode returns a node with one low-priority pod for each element of devices. The pod uses the devices with these
// indices.
func occupiedNode(name string, devices ...[]int) *occupied {
	e := &occupied{node: &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
		Status:     v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("20"), v1.ResourcePods: resource.MustParse("20")}},
	}}
	var all []int64
	for i, has := range devices {
		e.add(fmt.Sprintf("%s-%d", name, i), has)
		for _, device := range has {
			all = append(all, int64(device))
		}
	}
	e.slice = plugintest.Slice(all...)
	e.slice.Name, e.slice.Spec.NodeName, e.slice.Spec.Pool.Name = name, &name, name
	return e
}

func (e *occupied) objects() []runtime.Object {
	objects := []runtime.Object{e.node, e.slice}
	for i := range e.pods {
		objects = append(objects, e.pods[i], e.claims[i])
	}
	return objects
}

// heldFor returns a hold on all devices of the node for a pod. The pods on the node are its victims.
func (e *occupied) heldFor(pod *v1.Pod, claim types.UID) hold.Hold {
	held := hold.Hold{Pod: pod, Node: e.node.Name, Until: time.Now().Add(time.Hour), Try: 1, Claims: []hold.Claim{{UID: claim, Name: pod.Name}}}
	for i := range e.pods {
		held.Victims = append(held.Victims, e.pods[i].UID)
		held.Frees = append(held.Frees, e.claims[i].UID)
		for _, result := range e.claims[i].Status.Allocation.Devices.Results {
			held.Claims[0].Devices = append(held.Claims[0].Devices, resourceapi.DeviceRequestAllocationResult{Driver: result.Driver, Pool: result.Pool, Device: result.Device})
		}
	}
	return held
}

// preemptorFor returns a high-priority pod and its claim for n devices, both with the same name.
func preemptorFor(name string, n int64) (*v1.Pod, *resourceapi.ResourceClaim) {
	wanted := plugintest.Claim(n)
	wanted.Name, wanted.UID = name, types.UID("claim-"+name)
	return podFor(name, 50, "1", name), wanted
}

func podFor(name string, priority int32, cpu, claim string) *v1.Pod {
	p := plugintest.Pod()
	p.Name, p.UID, p.Spec.SchedulerName, p.Spec.Priority = name, types.UID(name), "default-scheduler", &priority
	p.Spec.ResourceClaims[0].ResourceClaimName = &claim
	p.Spec.Containers = []v1.Container{{Name: "c", Image: "i", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}}}}
	return p
}

// add adds a low-priority pod that uses the devices with these indices.
func (e *occupied) add(name string, devices []int) {
	p := podFor(name, 0, "1", name)
	p.Spec.NodeName, p.Status.Phase = e.node.Name, v1.PodRunning
	c := plugintest.Claim(int64(len(devices)))
	c.Name, c.UID, c.Finalizers = name, types.UID("claim-"+name), []string{resourceapi.Finalizer}
	c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: name, UID: p.UID}}
	c.Status.Allocation = &resourceapi.AllocationResult{}
	for _, i := range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Request: "mla", Driver: plugintest.Driver, Pool: e.node.Name, Device: plugintest.DeviceName(int64(i)),
		})
	}
	e.pods, e.claims = append(e.pods, p), append(e.claims, c)
}

// startPreempter returns a Preempter whose informers contain the objects.
func startPreempter(t *testing.T, objects ...runtime.Object) (context.Context, *Preempter) {
	t.Helper()
	ctx, h := plugintest.NewHandle(t, objects...)
	store, err := preparation.NewStore(plugintest.Features(), h.Manager, nil)
	require.NoError(t, err)
	resolver := &cycle.Resolver{Manager: h.Manager, Features: plugintest.Features(), Enabled: true}
	activate := func(*v1.Pod) {}
	holds, err := NewPodHolds(ctx, h, plugintest.NewMetrics(t), activate)
	require.NoError(t, err)
	holds.Add(h.ProfileName())
	args, err := configv1alpha1.DecodeArgs(nil, func(*configv1alpha1.DynamicResourcesCELArgs, *field.Path) field.ErrorList { return nil })
	require.NoError(t, err)
	p := &Preempter{
		Args: args.DevicePreemption, Handle: h, Metrics: plugintest.NewMetrics(t), Name: testedName, Prepared: preparation.AtOnce{View: preparation.View{Store: store, Constraints: true}},
		Allocators: &cycle.Allocators{
			Resolver: resolver, Preparing: store, Asked: demand.New(), Budget: allocator.Budget{Cost: 1 << 40, Steps: 1 << 30}, Cache: allocator.NewCache(),
		},
		Holding: &Holding{PodHolds: holds, Resolver: resolver, Name: testedName, Activate: activate}, Writes: pendingwrites.None{},
	}
	require.NoError(t, p.Start(ctx, h))
	h.Start(ctx, t, objects...)
	return ctx, p
}

// testedName is the plugin's name in the statuses of nodes that the plugin refuses.
const testedName = "DynamicResourcesCEL"
