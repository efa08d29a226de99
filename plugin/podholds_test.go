// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/celset/celset/plugin/cycle"
	"github.com/celset/celset/plugin/hold"
	"github.com/celset/celset/plugin/preempt"
)

// podsOnNode returns a node with one low-priority pod for each element of devices. The pod has the devices with these indices.
func podsOnNode(name string, devices ...[]int) *evictable {
	e := &evictable{node: &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
		Status:     v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("20"), v1.ResourcePods: resource.MustParse("20")}},
	}}
	var all []int64
	for i, has := range devices {
		e.add(rand.New(rand.NewPCG(1, 1)), fmt.Sprintf("%s-%d", name, i), has)
		e.pods[i].Spec.Priority = new(int32)
		for _, device := range has {
			all = append(all, int64(device))
		}
	}
	e.slice = slice(all...)
	e.slice.Name, e.slice.Spec.NodeName, e.slice.Spec.Pool.Name = name, &name, name
	return e
}

func (e *evictable) objects() []runtime.Object {
	objects := []runtime.Object{e.node, e.slice}
	for i := range e.pods {
		objects = append(objects, e.pods[i], e.claims[i])
	}
	return objects
}

// heldFor returns a hold on all devices of the node for a pod. The pods on the node are its victims.
func (e *evictable) heldFor(pod *v1.Pod, claim types.UID) hold.Hold {
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

// recording returns the pod of a hold, with the status condition that records the hold.
func recording(t *testing.T, held hold.Hold) *v1.Pod {
	t.Helper()
	condition, err := held.Condition(time.Now())
	require.NoError(t, err)
	pod := held.Pod.DeepCopy()
	pod.Status.Conditions = append(pod.Status.Conditions, *condition)
	return pod
}

// startPreempting returns the plugin with holds, and with the given objects in its caches.
func startPreempting(t *testing.T, args runtime.Object, objects ...runtime.Object) (context.Context, *DynamicResourcesCEL) {
	t.Helper()
	ctx, h := newHandle(t, objects...)
	shared := newShared()
	shared.preempts = true
	made, err := newPlugin(ctx, args, h, features(), true, newMetrics(t), shared)
	require.NoError(t, err)
	h.Start(ctx, t, objects...)
	return ctx, made
}

func holdingOf(pl *DynamicResourcesCEL) *preempt.Holding { return pl.holds.(*preempt.Holding) }

// jobOf returns a high-priority pod and its claim for n devices, both with the same name.
func jobOf(name string, n int64) (*v1.Pod, *resourceapi.ResourceClaim) {
	wanted := claim(n)
	wanted.Name, wanted.UID = name, types.UID("claim-"+name)
	return evictablePod(name, 50, "1", name), wanted
}

func saysOf(t *testing.T, client *fake.Clientset, pod string, text string) {
	t.Helper()
	var got string
	require.Eventually(t, func() bool {
		stored, err := client.CoreV1().Pods("default").Get(t.Context(), pod, metav1.GetOptions{})
		require.NoError(t, err)
		return slices.ContainsFunc(stored.Status.Conditions, func(c v1.PodCondition) bool {
			if c.Type == v1.PodScheduled {
				got = c.Message
			}
			return c.Type == v1.PodScheduled && strings.Contains(c.Message, text)
		})
	}, waitFor, tick, "%s", &got)
}

// TestHoldsAreRestored checks that a new scheduler restores recorded holds before it tries the first pod.
func TestHoldsAreRestored(t *testing.T) {
	e := podsOnNode("node-a", []int{0})
	e.pods[0].DeletionTimestamp, e.pods[0].Finalizers = &metav1.Time{Time: time.Now()}, []string{"example.com/slow"}
	e.slice = slice(0, 1, 2)
	e.slice.Spec.NodeName, e.slice.Spec.Pool.Name = &e.node.Name, e.node.Name
	job, wanted := jobOf("job", 3)
	held := e.heldFor(job, wanted.UID)
	for _, device := range []int64{1, 2} {
		held.Claims[0].Devices = append(held.Claims[0].Devices, resourceapi.DeviceRequestAllocationResult{Driver: driver, Pool: e.node.Name, Device: deviceName(device)})
	}
	low, lows := jobOf("low", 1)
	low.Spec.Priority = new(int32)
	client := fake.NewClientset(append(e.objects(), class(), recording(t, held), wanted, low, lows)...)
	pl := runPreempting(t, client)
	saysOf(t, client, "low", "3 devices of node-a are held")
	saysOf(t, client, "job", "preemption: waiting until the evicted pods free the held devices of node node-a")
	again, ok := holdingOf(pl).Of("job")
	require.True(t, ok)
	require.True(t, held.Until.Equal(again.Until))
	require.Equal(t, 1, again.Try)
}

// TestEveryProfileRestores checks that a profile without preemption also restores recorded holds.
func TestEveryProfileRestores(t *testing.T) {
	e := podsOnNode("node-a", []int{0})
	job, wanted := jobOf("job", 1)
	foreign, foreigns := jobOf("foreign", 1)
	job.Spec.SchedulerName, foreign.Spec.SchedulerName = "celset-scheduler", "another-scheduler"
	low, lows := jobOf("low", 1)
	later := e.heldFor(foreign, foreigns.UID)
	later.Began = time.Now()
	objects := append(e.objects(), class(), recording(t, e.heldFor(job, wanted.UID)), wanted, recording(t, later), foreigns, lows)
	ctx, pl := startPreempting(t, &runtime.Unknown{Raw: []byte(`{"allocator": "Upstream"}`), ContentType: runtime.ContentTypeJSON}, objects...)
	require.Equal(t, preempt.NoPreemption{}, pl.preempter)
	_, status := pl.PreFilter(ctx, framework.NewCycleState(), low, nil)
	require.True(t, status.IsSuccess(), "%v", status)
	require.Equal(t, 1, holdingOf(pl).Count())
	held, ok := holdingOf(pl).Of("foreign")
	require.True(t, ok)
	require.True(t, held.Foreign)
}

// TestPodsThatJoinAreRefused checks that no pod of the same or a lower priority joins the claim of an evicted pod. The joining
// pod would keep the devices from the preemptor.
func TestPodsThatJoinAreRefused(t *testing.T) {
	e := podsOnNode("node-a", []int{0})
	job, wanted := jobOf("job", 1)
	for name, test := range map[string]struct {
		priority int32
		refused  bool
	}{"lower": {0, true}, "the same": {50, true}, "higher": {51, false}} {
		t.Run(name, func(t *testing.T) {
			joins := evictablePod("joins", test.priority, "1", e.claims[0].Name)
			ctx, pl := startPreempting(t, nil, append(e.objects(), class(), job, wanted, joins)...)
			state := framework.NewCycleState()
			_, status := pl.PreFilter(ctx, state, joins, nil)
			require.True(t, status.IsSuccess(), "%v", status)
			holdingOf(pl).Begin(e.heldFor(job, wanted.UID))
			_, again := pl.PreFilter(ctx, framework.NewCycleState(), joins, nil)
			if !test.refused {
				require.True(t, again.IsSuccess(), "%v", again)
				pl.holds.Reserved(joins)
				require.Zero(t, holdingOf(pl).Count(), "it breaks the hold")
				return
			}
			require.Equal(t, fwk.UnschedulableAndUnresolvable, again.Code())
			require.Equal(t, "resourceclaim default/node-a-0 can't be used: its devices are held for a pod of the same or a higher priority, for which other pods were evicted", again.Message())
			require.Equal(t, again, pl.PreBind(ctx, state, joins, "node-a"), "it was given its node before")
		})
	}
}

// TestRefusedPodsKeepTheirNomination checks that PostFilter returns the nominated node for a pod that PreFilter refused.
// Otherwise DefaultPreemption would clear the nomination.
func TestRefusedPodsKeepTheirNomination(t *testing.T) {
	e := podsOnNode("node-a", []int{0})
	job, wanted := jobOf("job", 1)
	ctx, pl := startPreempting(t, nil, append(e.objects(), class(), job, wanted)...)
	result, status := pl.PostFilter(ctx, framework.NewCycleState(), job, framework.NewDefaultNodeToStatus())
	require.Nil(t, result)
	require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code())
	holdingOf(pl).Begin(e.heldFor(job, wanted.UID))
	result, status = pl.PostFilter(ctx, framework.NewCycleState(), job, framework.NewDefaultNodeToStatus())
	require.Equal(t, "node-a", result.NominatedNodeName)
	require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code())
	holdingOf(pl).Observe(job)
	require.Equal(t, 1, holdingOf(pl).Count(), "it isn't nominated, and has its hold")
}

// TestOneEvictionForOneClaim checks that three pods with one claim cause one eviction.
func TestOneEvictionForOneClaim(t *testing.T) {
	objects := []runtime.Object{class()}
	var nodes []*evictable
	for _, name := range []string{"node-a", "node-b", "node-c"} {
		e := podsOnNode(name, []int{0, 1})
		nodes = append(nodes, e)
		objects = append(objects, e.objects()...)
	}
	_, wanted := jobOf("wanted", 2)
	client := fake.NewClientset(append(objects, wanted)...)
	pl := runPreempting(t, client)
	for _, name := range []string{"job-0", "job-1", "job-2"} {
		_, err := client.CoreV1().Pods("default").Create(t.Context(), evictablePod(name, 50, "1", "wanted"), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	waiting := func() (count int) {
		list, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, pod := range list.Items {
			for _, c := range pod.Status.Conditions {
				if c.Type == v1.PodScheduled && strings.Contains(c.Message, "pods were evicted for another pod that uses the same resourceclaim") {
					count++
				}
			}
		}
		return count
	}
	require.Eventually(t, func() bool { return waiting() == 2 }, waitFor, tick)
	gone := func() (count int) {
		for _, e := range nodes {
			count += e.gone(t, client)
		}
		return count
	}
	require.Eventually(t, func() bool { return gone() > 0 }, waitFor, tick)
	require.Equal(t, 1, gone())
	require.Equal(t, 1, holdingOf(pl).Count())

	// The preemptor is deleted. Another pod that uses the claim inherits the hold, and the scheduler evicts no more pods.
	holder := func() (name string) {
		for _, pod := range []string{"job-0", "job-1", "job-2"} {
			live, err := client.CoreV1().Pods("default").Get(t.Context(), pod, metav1.GetOptions{})
			if err == nil {
				if condition := hold.ConditionOf(live); condition != nil && condition.Status == v1.ConditionTrue {
					name = pod
				}
			}
		}
		return name
	}
	first := ""
	require.Eventually(t, func() bool { first = holder(); return first != "" }, waitFor, tick)
	require.NoError(t, client.CoreV1().Pods("default").Delete(t.Context(), first, metav1.DeleteOptions{}))
	require.Eventually(t, func() bool { next := holder(); return next != "" && next != first }, waitFor, tick)
	require.Equal(t, 1, gone())
	require.Equal(t, 1, holdingOf(pl).Count())
}

// TestEvictionsGoOn checks that the scheduler continues to evict pods for the same devices after an eviction failed, and after
// a restart.
func TestEvictionsGoOn(t *testing.T) {
	for name, restarted := range map[string]bool{"eviction fails": false, "scheduler is restarted": true} {
		t.Run(name, func(t *testing.T) {
			a, b := podsOnNode("node-a", []int{0}, []int{1}, []int{2}), podsOnNode("node-b", []int{0}, []int{1}, []int{2})
			for _, e := range []*evictable{a, b} {
				for _, pod := range e.pods {
					pod.Spec.Priority = new(int32)
				}
			}
			for _, pod := range b.pods {
				*pod.Spec.Priority = 1
			}
			job, wanted := jobOf("job", 3)
			client := fake.NewClientset(append(append(a.objects(), b.objects()...), class(), wanted)...)
			if restarted {
				// The recorded hold chooses the next victim, although the victims on b would cost less.
				*b.pods[0].Spec.Priority, *b.pods[1].Spec.Priority, *b.pods[2].Spec.Priority = -1, -1, -1
				client = fake.NewClientset(append(append(a.objects(), b.objects()...), class(), wanted, recording(t, a.heldFor(job, wanted.UID)))...)
			}
			var refusals atomic.Int32
			client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if action.(clienttesting.DeleteAction).GetName() == "node-a-2" && refusals.Add(1) <= 2 {
					return true, nil, errors.New("refused by a policy")
				}
				return false, nil, nil
			})
			pl := runPreempting(t, client)
			if !restarted {
				_, err := client.CoreV1().Pods("default").Create(t.Context(), job, metav1.CreateOptions{})
				require.NoError(t, err)
			}
			require.Eventually(t, func() bool { return a.gone(t, client) == 7 }, waitFor, tick)
			require.Zero(t, b.gone(t, client))
			held, ok := holdingOf(pl).Of("job")
			require.True(t, ok)
			require.Equal(t, 1, held.Try)
			stored, err := client.CoreV1().Pods("default").Get(t.Context(), "job", metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, v1.ConditionTrue, hold.ConditionOf(stored).Status)
		})
	}
}

// TestEndingPodsCountAsGone checks that preemption counts terminating pods as gone unless their termination is overdue.
func TestEndingPodsCountAsGone(t *testing.T) {
	for name, test := range map[string]struct {
		deleted time.Time
		evicted int
		node    string
	}{
		"ends soon": {deleted: time.Now().Add(2 * time.Minute), node: "node-a"},
		"overdue":   {deleted: time.Now().Add(-time.Hour), evicted: 1, node: "node-b"},
		"ends late": {deleted: time.Now().Add(time.Hour), evicted: 1, node: "node-b"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := podsOnNode("node-a", []int{0}), podsOnNode("node-b", []int{0})
			a.pods[0].DeletionTimestamp, a.pods[0].Finalizers = &metav1.Time{Time: test.deleted}, []string{"example.com/slow"}
			// Priorities alone would choose the pod on the other node.
			*a.pods[0].Spec.Priority = 9
			job, wanted := jobOf("job", 1)
			if test.evicted > 0 {
				*a.pods[0].Spec.Priority = -1
			}
			client := fake.NewClientset(append(append(a.objects(), b.objects()...), class(), wanted)...)
			pl := runPreempting(t, client)
			_, err := client.CoreV1().Pods("default").Create(t.Context(), job, metav1.CreateOptions{})
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				held, ok := holdingOf(pl).Of("job")
				return ok && held.Node == test.node
			}, waitFor, tick)
			require.Eventually(t, func() bool {
				stored, err := client.CoreV1().Pods("default").Get(t.Context(), "job", metav1.GetOptions{})
				require.NoError(t, err)
				return hold.ConditionOf(stored) != nil && b.gone(t, client) == test.evicted
			}, waitFor, tick)
		})
	}
}

// TestHigherPodLeavesWhatIsHeld checks that a pod of a higher priority preempts a hold only if all other victims cost more.
func TestHigherPodLeavesWhatIsHeld(t *testing.T) {
	for name, test := range map[string]struct {
		other int32
		node  string
	}{"they are less important": {20, "node-b"}, "they are more important": {55, "node-a"}} {
		t.Run(name, func(t *testing.T) {
			a, b := podsOnNode("node-a", []int{0}), podsOnNode("node-b", []int{0})
			a.pods[0].DeletionTimestamp, a.pods[0].Finalizers = &metav1.Time{Time: time.Now().Add(2 * time.Minute)}, []string{"example.com/slow"}
			*b.pods[0].Spec.Priority = test.other
			job, wanted := jobOf("job", 1)
			high, highs := jobOf("high", 1)
			*high.Spec.Priority = 60
			client := fake.NewClientset(append(append(a.objects(), b.objects()...), class(), wanted, highs, recording(t, a.heldFor(job, wanted.UID)))...)
			pl := runPreempting(t, client)
			_, err := client.CoreV1().Pods("default").Create(t.Context(), high, metav1.CreateOptions{})
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				_, ok := holdingOf(pl).Of("high")
				return ok
			}, waitFor, tick)
			held, _ := holdingOf(pl).Of("high")
			require.Equal(t, test.node, held.Node)
			_, ok := holdingOf(pl).Of("job")
			require.Equal(t, test.node == "node-b", ok, "the hold of a lower priority is broken by that")
		})
	}
}

// TestNodesThatAreNamed checks that the message about held devices names only nodes that the pod could use.
func TestNodesThatAreNamed(t *testing.T) {
	a, b := podsOnNode("node-a", []int{0}), podsOnNode("node-b", []int{0})
	_, pl := startPreempting(t, nil, append(append(a.objects(), b.objects()...), class())...)
	for _, e := range []*evictable{a, b} {
		job, wanted := jobOf("job-"+e.node.Name, 1)
		holdingOf(pl).Begin(e.heldFor(job, wanted.UID))
	}
	low := evictablePod("low", 0, "1", "low")
	nodes := framework.NewNodeToStatus(map[string]*fwk.Status{
		"node-a": fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "no devices").WithPlugin(Name),
		"node-b": fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "taint").WithPlugin("TaintToleration"),
	}, nil)
	require.Equal(t, "2 devices of node-a and 1 other nodes are held for pods of the same or a higher priority, for which other pods were evicted", pl.holds.Text(low, &cycle.PodClaims{}, nodes))
}
