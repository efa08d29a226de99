// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/preemption"
	"github.com/celset/celset/internal/testing/cases"
)

// A random state has nodes with eight devices, and pods of several priorities that use some of the devices. For each node, one
// pod of the highest priority needs a row of devices. The test compares the victims that the scheduler evicts with an
// exhaustive search over all sets of pods.

// row is true for devices with consecutive indices.
const row = `devices.map(d, d.attributes["mla.example.com"].index).max() - devices.map(d, d.attributes["mla.example.com"].index).min() == devices.size() - 1`

// evictable is one node of a random state.
type evictable struct {
	node    *v1.Node
	slice   *resourceapi.ResourceSlice
	pods    []*v1.Pod
	claims  []*resourceapi.ResourceClaim
	budgets []*policy.PodDisruptionBudget
	// wants is the preemptor for this node, and wantsClaim is the preemptor's claim.
	wants      *v1.Pod
	wantsClaim *resourceapi.ResourceClaim
}

const evictableDevices = 8

func randomEvictable(t *testing.T, random *rand.Rand, name string) *evictable {
	t.Helper()
	e := &evictable{node: &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
		Status:     v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("10"), v1.ResourcePods: resource.MustParse("20")}},
	}}
	e.slice = slice(0, 1, 2, 3, 4, 5, 6, 7)
	e.slice.Name, e.slice.Spec.NodeName, e.slice.Spec.Pool.Name = name, &name, name
	free := random.Perm(evictableDevices)
	for i := 0; len(free) > 1 && i < 7; i++ {
		n := min(1+random.IntN(3), len(free))
		e.add(random, fmt.Sprintf("%s-pod-%d", name, i), free[:n])
		free = free[n:]
	}
	for i := range random.IntN(3) {
		e.budgets = append(e.budgets, &policy.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%d", name, i)},
			Spec:       policy.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"node": name, "budget": fmt.Sprint(i)}}},
			Status:     policy.PodDisruptionBudgetStatus{DisruptionsAllowed: random.Int32N(2)},
		})
	}
	e.wantsClaim = constrain(t, claim(int64(1+random.IntN(4))), "row", row)
	e.wantsClaim.Name, e.wantsClaim.UID = name, types.UID("claim-"+name)
	e.wants = evictablePod(name, 100, "1", name)
	e.wants.Spec.NodeSelector = map[string]string{v1.LabelHostname: name}
	return e
}

func evictablePod(name string, priority int32, cpu, claim string) *v1.Pod {
	p := pod()
	p.Name, p.UID, p.Spec.SchedulerName, p.Spec.Priority = name, types.UID(name), "default-scheduler", &priority
	p.Spec.ResourceClaims[0].ResourceClaimName = &claim
	p.Spec.Containers = []v1.Container{{Name: "c", Image: "i", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}}}}
	return p
}

// add adds a pod that uses the devices with these indices. A pod with the random priority 100 can't be evicted by the
// preemptor.
func (e *evictable) add(random *rand.Rand, name string, devices []int) {
	priority := int32([]int{0, 1, 1, 2, 2, 2, 100}[random.IntN(7)])
	p := evictablePod(name, priority, "1", name)
	p.Spec.NodeName = e.node.Name
	p.Labels = map[string]string{"node": e.node.Name, "budget": fmt.Sprint(random.IntN(3))}
	p.Status.Phase, p.Status.StartTime = v1.PodRunning, &metav1.Time{Time: time.Unix(int64(1000+random.IntN(4)), 0)}
	c := claim(int64(len(devices)))
	c.Name, c.UID, c.Finalizers = name, types.UID("claim-"+name), []string{resourceapi.Finalizer}
	c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: name, UID: p.UID}}
	c.Status.Allocation = &resourceapi.AllocationResult{}
	for _, i := range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Request: "mla", Driver: driver, Pool: e.node.Name, Device: deviceName(int64(i)),
		})
	}
	e.pods, e.claims = append(e.pods, p), append(e.claims, c)
}

// cost returns the cost of evicting the pods whose index satisfies goes. Victims are ordered by importance as in
// kube-scheduler. fits is true if the preemptor gets devices after these evictions.
func (e *evictable) cost(t *testing.T, goes func(i int) bool) (cost preemption.Cost, fits bool) {
	t.Helper()
	order := make([]int, len(e.pods))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if *e.pods[a].Spec.Priority != *e.pods[b].Spec.Priority {
			return int(*e.pods[b].Spec.Priority - *e.pods[a].Spec.Priority)
		}
		return e.pods[a].Status.StartTime.Compare(e.pods[b].Status.StartTime.Time)
	})
	allowed := map[string]int32{}
	for i, budget := range e.budgets {
		allowed[fmt.Sprint(i)] = budget.Status.DisruptionsAllowed
	}
	cost.Highest = -1 << 31
	var stay []*resourceapi.ResourceClaim
	for _, i := range order {
		p := e.pods[i]
		if !goes(i) {
			stay = append(stay, e.claims[i])
			continue
		}
		if _, has := allowed[p.Labels["budget"]]; has {
			if allowed[p.Labels["budget"]]--; allowed[p.Labels["budget"]] < 0 {
				cost.Violations++
			}
		}
		if cost.Pods == 0 {
			cost.Highest, cost.Earliest = *p.Spec.Priority, p.Status.StartTime.Time
		}
		cost.Sum += int64(*p.Spec.Priority) + 1<<31
		cost.Pods++
	}
	problem := allocator.Problem{
		Claims: []*resourceapi.ResourceClaim{e.wantsClaim}, Allocated: stay, Classes: onlyClass{}, Slices: []*resourceapi.ResourceSlice{e.slice},
		Features: dynamicresources.AllocatorFeatures(features()), Selectors: dracel.NewCache(10, dracel.Features{}),
	}
	a, err := problem.NewAllocator(t.Context())
	require.NoError(t, err)
	results, err := a.Allocate(t.Context(), e.node, problem.Claims)
	require.NoError(t, err)
	return cost, results != nil
}

// least returns the cost of the cheapest set of victims, or nil if no set makes the preemptor fit. If the preemptor fits
// without evictions, the result is the cost of the empty set.
func (e *evictable) least(t *testing.T) *preemption.Cost {
	t.Helper()
	var least *preemption.Cost
	for mask := range 1 << len(e.pods) {
		goes := func(i int) bool { return mask>>i&1 == 1 }
		if slices.ContainsFunc(e.pods, func(p *v1.Pod) bool { return *p.Spec.Priority == 100 && goes(slices.Index(e.pods, p)) }) {
			continue
		}
		if cost, fits := e.cost(t, goes); fits && (least == nil || cost.Compare(*least) < 0) {
			least = &cost
		}
	}
	return least
}

// runPreempting runs Kubernetes' scheduler with the plugin and preemption for devices.
func runPreempting(t *testing.T, client kubernetes.Interface) (made *DynamicResourcesCEL) {
	t.Helper()
	runScheduler(t, client, true, func(ctx context.Context, args runtime.Object, handle fwk.Handle) (_ fwk.Plugin, err error) {
		shared := newShared()
		shared.preempts = true
		made, err = newPlugin(ctx, args, handle, features(), true, newMetrics(t), shared)
		return made, err
	})
	return made
}

// TestVictimsCostLeast compares the scheduler's victims with the cheapest of all sets of pods, on nodes of random states.
func TestVictimsCostLeast(t *testing.T) {
	nodes, seeds := 40, cases.Of(1, 5)
	evicted, several, nobody := 0, 0, 0
	for seed := range seeds {
		random := rand.New(rand.NewPCG(uint64(seed), cases.Seed()))
		objects := []runtime.Object{class()}
		var all []*evictable
		for i := range nodes {
			e := randomEvictable(t, random, fmt.Sprintf("node-%d-%d", seed, i))
			all = append(all, e)
			objects = append(objects, e.node, e.slice, e.wantsClaim)
			for i := range e.pods {
				objects = append(objects, e.pods[i], e.claims[i])
			}
			for _, budget := range e.budgets {
				objects = append(objects, budget)
			}
		}
		client := fake.NewClientset(objects...)
		pl := runPreempting(t, client)
		for _, e := range all {
			least := e.least(t)
			_, err := client.CoreV1().Pods("default").Create(t.Context(), e.wants, metav1.CreateOptions{})
			require.NoError(t, err)
			switch {
			case least == nil:
				nobody++
				require.Eventually(t, func() bool {
					stored, err := client.CoreV1().Pods("default").Get(t.Context(), e.wants.Name, metav1.GetOptions{})
					require.NoError(t, err)
					return slices.ContainsFunc(stored.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse })
				}, waitFor, tick)
				require.Zero(t, e.gone(t, client))
			case least.Pods == 0:
				require.Eventually(t, func() bool {
					c, err := client.ResourceV1().ResourceClaims("default").Get(t.Context(), e.wantsClaim.Name, metav1.GetOptions{})
					require.NoError(t, err)
					return c.Status.Allocation != nil
				}, waitFor, tick)
				require.Zero(t, e.gone(t, client))
			default:
				evicted++
				if least.Pods > 1 {
					several++
				}
				mask := 0
				require.Eventually(t, func() bool {
					held, ok := holdingOf(pl).Of(e.wants.UID)
					mask = e.gone(t, client)
					gone := 0
					for i := range e.pods {
						gone += mask >> i & 1
					}
					return ok && gone == len(held.Victims)
				}, waitFor, tick, "%+v", least)
				cost, fits := e.cost(t, func(i int) bool { return mask>>i&1 == 1 })
				require.True(t, fits)
				require.Zero(t, cost.Compare(*least), "%s: %+v, but %+v would do", e.node.Name, cost, least)
			}
		}
	}
	t.Logf("%d evicted pods, %d of them several, %d could not be helped", evicted, several, nobody)
	require.Positive(t, several)
	require.Positive(t, nobody)
}

// gone returns a mask. Bit i is set if the node's pod i is deleted.
func (e *evictable) gone(t *testing.T, client kubernetes.Interface) (mask int) {
	t.Helper()
	list, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i, p := range e.pods {
		if !slices.ContainsFunc(list.Items, func(there v1.Pod) bool { return there.UID == p.UID }) {
			mask |= 1 << i
		}
	}
	return mask
}

// onlyClass is a lister with the test's DeviceClass as its only class.
type onlyClass struct{}

func (onlyClass) List() ([]*resourceapi.DeviceClass, error) {
	return []*resourceapi.DeviceClass{class()}, nil
}

func (onlyClass) Get(string) (*resourceapi.DeviceClass, error) { return class(), nil }

// TestNobodyElseIsEvictedMeanwhile retries a preemptor while its victim is gone and the victim's claim is still allocated. The
// scheduler must not evict the possible victim on the other node.
func TestNobodyElseIsEvictedMeanwhile(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	objects := []runtime.Object{class()}
	var all []*evictable
	for _, name := range []string{"node-a", "node-b"} {
		e := randomEvictable(t, random, name)
		e.pods, e.claims = nil, nil
		e.add(random, name+"-low", []int{0, 1, 2, 3, 4, 5, 6, 7})
		e.pods[0].Spec.Priority = new(int32)
		objects = append(objects, e.node, e.slice, e.pods[0], e.claims[0])
		all = append(all, e)
	}
	wanted := all[0].wants
	wanted.Spec.NodeSelector = nil
	other := claim(1)
	other.Name, other.UID, other.ResourceVersion = "other", "claim-other", "1"
	other.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{
		{Request: "mla", Driver: "other.example.com", Pool: "p", Device: "d"},
	}}}
	client := fake.NewClientset(append(objects, all[0].wantsClaim, other)...)
	runPreempting(t, client)
	_, err := client.CoreV1().Pods("default").Create(t.Context(), wanted, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return all[0].gone(t, client)+all[1].gone(t, client) == 1 }, waitFor, tick)
	// The deallocation of a third claim makes the scheduler retry the preemptor.
	other.Status.Allocation, other.ResourceVersion = nil, "1000"
	_, err = client.ResourceV1().ResourceClaims("default").UpdateStatus(t.Context(), other, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		stored, err := client.CoreV1().Pods("default").Get(t.Context(), wanted.Name, metav1.GetOptions{})
		require.NoError(t, err)
		return slices.ContainsFunc(stored.Status.Conditions, func(c v1.PodCondition) bool { return strings.Contains(c.Message, "until the evicted pods free") })
	}, waitFor, tick)
	require.Equal(t, 1, all[0].gone(t, client)+all[1].gone(t, client))
}
