// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/internal/testing/plugintest"
	"github.com/celset/celset/plugin/cycle"
	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/hold"
)

// TestOutlook checks when a preemptor continues to wait for held devices, continues evictions, or gives up.
func TestOutlook(t *testing.T) {
	ending := &metav1.Time{Time: time.Unix(1, 0)}
	reserve := func(reference resourceapi.ResourceClaimConsumerReference) func(*occupied, *hold.Hold) {
		return func(e *occupied, held *hold.Hold) {
			held.Victims = []types.UID{"gone"}
			e.claims[0].Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{reference}
		}
	}
	joiner := resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: "node-a-0", UID: "node-a-0"}
	ends := func(e *occupied, _ *hold.Hold) {
		e.pods[0].DeletionTimestamp, e.pods[0].Finalizers = ending, []string{"example.com/slow"}
	}
	for name, test := range map[string]struct {
		change         func(*occupied, *hold.Hold)
		refused        *fwk.Status
		evicted        bool
		want, again    outlook
		why, whyAtLast string
	}{
		"the victim was not evicted":      {want: resumes, again: resumes},
		"the victim was evicted just now": {evicted: true, want: waits, again: waits},
		"the victim is ending":            {change: ends, want: waits, again: waits},
		"the victim ends, CPU is missing": {change: ends, refused: fwk.NewStatus(fwk.Unschedulable, "no CPU").WithPlugin("NodeResourcesFit"), want: waits, again: waits},
		"the node has got a taint":        {change: ends, refused: fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "taint").WithPlugin("TaintToleration"), want: waits, again: waits},
		"nobody is evicted from a node with a taint": {
			refused: fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "taint").WithPlugin("TaintToleration"),
			want:    lost, again: lost, why: "the node refuses the pod for another reason: taint",
		},
		"the claim is to be freed":                 {change: reserve(resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: "gone", UID: "gone"}), want: waits, again: waits},
		"the user is another pod by now":           {change: reserve(resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: "node-a-0", UID: "before"}), want: waits, again: waits},
		"a pod of a lower priority uses the claim": {change: reserve(joiner), want: joins, again: joins},
		"it does while the node has a taint": {
			change: reserve(joiner), refused: fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "taint").WithPlugin("TaintToleration"),
			want: lost, again: lost, why: "pod default/node-a-0 uses some of the devices",
		},
		"too many pods do": {change: func(e *occupied, held *hold.Hold) {
			reserve(joiner)(e, held)
			held.Joined = hold.MaxJoined
		}, want: lost, again: lost, why: "pod default/node-a-0 uses some of the devices"},
		"it runs on another node": {change: func(e *occupied, held *hold.Hold) {
			reserve(joiner)(e, held)
			e.pods[0].Spec.NodeName = "node-b"
		}, want: lost, again: lost, why: "pod default/node-a-0 uses some of the devices"},
		"it has the same priority": {change: func(e *occupied, held *hold.Hold) {
			reserve(joiner)(e, held)
			e.pods[0].Spec.Priority = held.Pod.Spec.Priority
		}, want: lost, again: lost, why: "pod default/node-a-0 uses some of the devices"},
		"it has a higher priority": {change: func(e *occupied, held *hold.Hold) {
			reserve(joiner)(e, held)
			e.pods[0].Spec.Priority = ptr.To(*held.Pod.Spec.Priority + 1)
		}, want: broken, again: broken, why: "pod default/node-a-0 uses some of the devices"},
		"somebody uses it who is no pod": {change: reserve(resourceapi.ResourceClaimConsumerReference{APIGroup: "example.com", Resource: "jobs", Name: "x", UID: "x"}), want: lost, again: lost, why: "jobs default/x uses some of the devices"},
		"what was held has other names":  {change: func(e *occupied, held *hold.Hold) { ends(e, held); held.Claims[0].Devices[0].Device = "partition" }, want: waits, again: waits},
		"all is free": {change: func(e *occupied, held *hold.Hold) {
			held.Victims, e.claims[0].Status = []types.UID{"gone"}, resourceapi.ResourceClaimStatus{}
		}, want: free, again: lost, whyAtLast: "the devices are free, but the node refuses the pod: refused"},
	} {
		t.Run(name, func(t *testing.T) {
			e := occupiedNode("node-a", []int{0})
			job, wanted := preemptorFor("job", 1)
			held := e.heldFor(job, wanted.UID)
			if test.change != nil {
				test.change(e, &held)
			}
			_, p := startPreempter(t, append(e.objects(), plugintest.Class(), job, wanted)...)
			held = p.Holding.Begin(held)
			if test.evicted {
				p.Holding.Evicted("job", e.pods[0].UID, false)
			}
			refused := test.refused
			if refused == nil {
				refused = fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "refused").WithPlugin(testedName)
			}
			got, why := p.outlookOf(&held, refused)
			require.Equal(t, test.want, got)
			require.Equal(t, test.why, why)
			got, why = p.outlookOf(&held, refused)
			require.Equal(t, test.again, got)
			require.Equal(t, test.why+test.whyAtLast, why)
			if test.again == joins {
				ctx, log := plugintest.WithLog(t.Context())
				require.NotNil(t, p.join(ctx, &held))
				plugintest.RequireLogged(t, log, "Evicting pods that started to use claims which are being freed for another pod")
			}
		})
	}
}

// TestConditionThatCanNotBeReadIsLogged restores the hold of a pod whose condition a client has overwritten with invalid text.
func TestConditionThatCanNotBeReadIsLogged(t *testing.T) {
	job, wanted := preemptorFor("job", 1)
	job.Status.Conditions = []v1.PodCondition{{Type: wellknown.ConditionDevicesHeld, Status: v1.ConditionTrue, Message: "soon"}}
	_, p := startPreempter(t, plugintest.Class(), job, wanted)
	ctx, log := plugintest.WithLog(t.Context())
	p.Holding.logger = klog.FromContext(ctx)
	p.Holding.restoreFor(job, false)
	plugintest.RequireLogged(t, log, "The condition of a pod that records its held devices can't be read; no devices are held for the pod")
}

// TestTriesEnd checks that after hold.MaxTries tries no more pods are evicted for a preemptor.
func TestTriesEnd(t *testing.T) {
	e := occupiedNode("node-a", []int{0})
	job, wanted := preemptorFor("job", 1)
	_, p := startPreempter(t, append(e.objects(), plugintest.Class(), job, wanted)...)
	says := func(text string) {
		t.Helper()
		result, status, resumed := p.wait(t.Context(), job, &cycle.PodClaims{Unallocated: []*resourceapi.ResourceClaim{wanted}}, framework.NewDefaultNodeToStatus())
		require.Nil(t, resumed)
		require.Contains(t, status.Message(), text)
		require.Empty(t, result.NominatedNodeName)
	}
	held := e.heldFor(job, wanted.UID)
	held.Try = 0
	p.Holding.Begin(held)
	p.Holding.End("job", hold.Broken)
	says("preemption: the hold of devices for the pod ended before any pod was evicted: the next try is after a back-off")
	p.Holding.Begin(held)
	p.Holding.Evicted("job", "victim", false)
	p.Holding.End("job", hold.Broken)
	says("pods were evicted for the pod 1 times without success: the next eviction is after a back-off")
	held.Try = hold.MaxTries
	p.Holding.Begin(held)
	p.Holding.Evicted("job", "victim", false)
	p.Holding.End("job", hold.Broken)
	says("pods were evicted for the pod 6 times without success, and no more pods are evicted for it: create the pod again to allow evictions")
}

// chosenNode is the node that upstream's executor evicts pods from.
type chosenNode struct {
	upstream.Candidate
	node string
}

func (c chosenNode) Name() string { return c.node }

type evictingFor struct {
	upstream.ExecutorPreemptor
	pod *v1.Pod
}

func (p evictingFor) UID() types.UID { return p.pod.UID }

// TestNothingIsEvictedForNobody checks that no pod is evicted before the hold is recorded, or after the preemptor no
// longer needs the devices.
func TestNothingIsEvictedForNobody(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "job")
	for name, test := range map[string]struct {
		// stored changes the cached version of the preemptor, or returns nil to remove it from the cache.
		stored  func(*v1.Pod) *v1.Pod
		answer  error
		again   bool
		want    error
		holds   int
		patches int32
	}{
		"waits":      {holds: 1, patches: 1},
		"gone":       {stored: func(*v1.Pod) *v1.Pod { return nil }, want: errPreemptorGone},
		"made again": {stored: func(pod *v1.Pod) *v1.Pod { pod.UID = "again"; return pod }, want: errPreemptorGone},
		"bound":      {stored: func(pod *v1.Pod) *v1.Pod { pod.Spec.NodeName = "node-b"; return pod }, want: errPreemptorBound},
		"changed":    {stored: func(pod *v1.Pod) *v1.Pod { pod.Generation = 2; return pod }, want: errPreemptorChanged, holds: 1, patches: 1},
		"being deleted": {stored: func(pod *v1.Pod) *v1.Pod {
			pod.DeletionTimestamp, pod.Finalizers = &metav1.Time{Time: time.Now()}, []string{"a/b"}
			return pod
		}, want: errPreemptorGone},
		"not recorded": {answer: notFound, want: notFound, patches: 1},
		"no answer":    {answer: errors.New("timeout"), want: errors.New("timeout"), patches: 1},
		"fits by now":  {again: true, want: errFitsAlready},
	} {
		t.Run(name, func(t *testing.T) {
			e := occupiedNode("node-a", []int{0}, []int{1})
			job, wanted := preemptorFor("job", 2)
			objects := append(e.objects(), plugintest.Class(), wanted)
			stored := job.DeepCopy()
			if test.stored != nil {
				stored = test.stored(stored)
			}
			if stored != nil {
				objects = append(objects, stored)
			}
			ctx, p := startPreempter(t, objects...)
			var patches atomic.Int32
			p.Handle.ClientSet().(*fake.Clientset).PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				patches.Add(1)
				return true, &v1.Pod{}, test.answer
			})
			held := e.heldFor(job, wanted.UID)
			trial := &preemptionTrial{pod: job, fitsAlready: test.again, found: map[string]*foundVictims{"node-a": {pods: e.pods, claims: held.Claims, frees: held.Frees}}}
			p.evictions.begin(&eviction{trial: trial}, func(types.UID) bool { return false })
			evicted := 0
			evict := p.evicting(func(context.Context, upstream.Candidate, upstream.ExecutorPreemptor, *v1.Pod, string) (bool, error) {
				evicted++
				return false, nil
			})
			for _, victim := range e.pods {
				_, err := evict(ctx, chosenNode{node: "node-a"}, evictingFor{pod: job}, victim, "")
				if test.want == nil {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, test.want.Error())
				}
			}
			require.Equal(t, test.want == nil, evicted == 2)
			require.Equal(t, test.want != nil, evicted == 0)
			require.Equal(t, test.holds, p.Holding.Count())
			require.GreaterOrEqual(t, patches.Load(), test.patches)
		})
	}
}

// TestServedByAnotherPod checks a hold whose claim was allocated through another pod of the claim. The preemptor keeps waiting.
func TestServedByAnotherPod(t *testing.T) {
	e := occupiedNode("node-a", []int{0})
	job, wanted := preemptorFor("job", 1)
	held := e.heldFor(job, wanted.UID)
	wanted.Status.Allocation = e.claims[0].Status.Allocation
	e.claims[0].Status = resourceapi.ResourceClaimStatus{}
	_, p := startPreempter(t, plugintest.Class(), job, wanted, e.claims[0])
	p.Holding.Begin(held)
	others, given := p.Holding.heldFrom(podFor("low", 0, "1", "low"), &cycle.PodClaims{})
	require.Empty(t, others)
	require.Equal(t, wanted.Status.Allocation.Devices.Results, given, "the list of devices in use may not have them yet")
	statuses := framework.NewDefaultNodeToStatus()
	for range 3 {
		result, status, _ := p.wait(t.Context(), job, &cycle.PodClaims{Unallocated: []*resourceapi.ResourceClaim{wanted}}, statuses)
		require.Equal(t, "node-a", result.NominatedNodeName)
		require.Contains(t, status.Message(), "waiting until the evicted pods free the held devices")
	}
	_, status, resumed := p.wait(t.Context(), job, &cycle.PodClaims{Allocated: []*resourceapi.ResourceClaim{wanted}}, statuses)
	require.Nil(t, status, "others may be evicted for CPU")
	require.Nil(t, resumed)
	require.Equal(t, 1, p.Holding.Count())
}

// TestNamesOfNodes checks that a message names at most maxNamedNodes nodes.
func TestNamesOfNodes(t *testing.T) {
	require.Equal(t, "a, b", nodeNames([]string{"b", "a", "b"}, 0))
	require.Equal(t, "a and 2 other nodes", nodeNames([]string{"a"}, 2))
	require.Equal(t, "3 nodes", nodeNames(nil, 3))
	require.Equal(t, "1, 2, 3, 4, 5 and 3 other nodes", nodeNames([]string{"1", "2", "3", "4", "5", "6", "7"}, 1))
}

// neverFits is false for every set, but propagation can't find that out.
const neverFits = `devices.map(d, d.attributes["mla.example.com"].index * (d.attributes["mla.example.com"].index + 7)).sum() % 1000003 == 1000002`

// simulateNever searches in a simulation for devices that satisfy neverFits. The node has sixteen free devices.
func simulateNever(t *testing.T, name string, budget *allocator.AttemptBudget) error {
	t.Helper()
	var indices []int64
	for i := range int64(16) {
		indices = append(indices, 'a'-'0'+i)
	}
	wanted := plugintest.Constrain(t, plugintest.Claim(8), "never", neverFits)
	wanted.Name, wanted.UID = name, types.UID("claim-"+name)
	user := podFor(name, 1000, "1", name)
	ctx, p := startPreempter(t, plugintest.Class(), plugintest.Slice(indices...), wanted, user)
	claims := []*resourceapi.ResourceClaim{wanted}
	trial, err := p.newTrial(ctx, user, &cycle.PodClaims{Unallocated: claims}, budget)
	require.NoError(t, err)
	s := &simulation{preemptionTrial: trial, removed: map[types.UID]*v1.Pod{}}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: plugintest.NodeName, Labels: map[string]string{v1.LabelHostname: plugintest.NodeName}}}
	_, err = s.Allocate(ctx, node, claims)
	return err
}

// TestTrialsShareABudget checks that trials with the same budget use up its steps together.
func TestTrialsShareABudget(t *testing.T) {
	const steps = 2000
	budget := allocator.NewAttemptBudget(allocator.Budget{Cost: 1 << 40, Steps: steps})
	for _, name := range []string{"first", "second", "third"} {
		require.ErrorAs(t, simulateNever(t, name, budget), new(*allocator.BudgetError), name)
		require.Less(t, budget.Steps(), int64(2*steps), name)
	}
}

// TestTrialEndsWithItsAttempt checks that the end of an attempt interrupts a simulated search. The result does not say that the
// node is unsuitable.
func TestTrialEndsWithItsAttempt(t *testing.T) {
	budget := allocator.NewAttemptBudget(allocator.Budget{Cost: 1 << 40, Steps: 1 << 40})
	budget.End(&guard.OvertimeError{})
	err := simulateNever(t, "job", budget)
	require.ErrorIs(t, err, structured.ErrFailedAllocationOnNode)
	require.ErrorContains(t, err, "not checked")
	require.LessOrEqual(t, budget.Steps(), int64(1))
}

// unlistable is a manager that fails the test if ResourceClaims are listed.
type unlistable struct {
	fwk.SharedDRAManager
	t *testing.T
}

func (u unlistable) ResourceClaims() fwk.ResourceClaimTracker {
	return unlistableClaims{u.SharedDRAManager.ResourceClaims(), u.t}
}

type unlistableClaims struct {
	fwk.ResourceClaimTracker
	t *testing.T
}

func (c unlistableClaims) List() ([]*resourceapi.ResourceClaim, error) {
	c.t.Error("all claims are listed")
	return c.ResourceClaimTracker.List()
}

// TestHoldsListNoClaims checks that the claims of a hold are looked up by UID, not by listing all claims. A preemptor is tried
// often, and clusters have many claims.
func TestHoldsListNoClaims(t *testing.T) {
	e := occupiedNode("node-a", []int{0}, []int{1}, []int{2})
	job, wanted := preemptorFor("job", 2)
	_, p := startPreempter(t, append(e.objects(), plugintest.Class(), job, wanted)...)
	p.Allocators.Resolver.Manager = unlistable{p.Allocators.Resolver.Manager, t}
	held := e.heldFor(job, wanted.UID)
	held.Victims, held.Frees = held.Victims[:2], held.Frees[:2]
	held = p.Holding.Begin(held)

	var freed []types.UID
	for _, claim := range p.Holding.freedBy(&held) {
		freed = append(freed, claim.UID)
	}
	require.ElementsMatch(t, held.Frees, freed)
	require.True(t, p.Holding.useOf(&held).freeing)
	alive, ending := p.victimsOf(&held)
	require.ElementsMatch(t, held.Victims, alive)
	require.False(t, ending)
	trial := &preemptionTrial{holding: p.Holding}
	trial.resume(&held)
	require.Len(t, trial.only, 2)
	require.Empty(t, p.Holding.freedBy(&hold.Hold{Frees: []types.UID{"gone"}}))
}
