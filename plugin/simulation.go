// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/plugin/guard"
)

// Preemption removes pods from a node in thought and runs the filters again. Upstream's plugin does not
// learn of it: for that Filter the devices of the pods are still taken. So while a preemption is being
// tried, the state of the scheduling cycle has a simulation, which learns of it by
// PreFilterExtensions, and Filter has the allocator answer for the time when the pods are gone.
//
// Upstream's Filter does the rest, as ever. The allocator that it calls finds the simulation in the
// context.

// simulationKey is where the state of a scheduling cycle has its *simulation, and a context.
const simulationKey fwk.StateKey = Name + "/preemption"

type simulationInContext struct{}

// preemptionTrial is what all simulations for one pod have together: each is about one node.
type preemptionTrial struct {
	pl      *DynamicResourcesCEL
	pod     *v1.Pod
	attempt *guard.Attempt
	// base is the allocator for the time when nobody is gone.
	base *allocator.Allocator
	// own are the claims of the pod. What they have they keep.
	own sets.Set[types.UID]
	// held are the devices that are held for others. Whoever has them now, the pod does not get them.
	held sets.Set[structured.DeviceID]

	// mutex guards what follows.
	mutex sync.Mutex
	// results are what was allocated last on a node.
	results map[string][]resourceapi.AllocationResult
	// found is what was found out about nodes on which the pod would fit.
	found map[string]*foundVictims
}

// simulation is a trial on one node. Who clones the state of the cycle has one of his own.
type simulation struct {
	*preemptionTrial
	// removed are the pods that are gone, by UID.
	removed map[types.UID]*v1.Pod
	// without is the allocator for that, nil if it has to be made.
	without *allocator.Allocator
}

// Clone implements [fwk.StateData].
func (s *simulation) Clone() fwk.StateData {
	return &simulation{preemptionTrial: s.preemptionTrial, removed: maps.Clone(s.removed), without: s.without}
}

// simulationIn is nil outside of a preemption.
func simulationIn(state fwk.CycleState) *simulation {
	data, err := state.Read(simulationKey)
	if err != nil {
		return nil
	}
	s, _ := data.(*simulation)
	return s
}

// simulatedIn is the simulation for which Filter asks, nil if it asks for what is.
func simulatedIn(ctx context.Context) *simulation {
	s, _ := ctx.Value(simulationInContext{}).(*simulation)
	return s
}

// PreFilterExtensions implements [fwk.PreFilterPlugin]. It is nil, as upstream's, while devices are not
// preempted.
func (pl *DynamicResourcesCEL) PreFilterExtensions() fwk.PreFilterExtensions {
	if pl.preempter == nil {
		return nil
	}
	return pl
}

// RemovePod implements [fwk.PreFilterExtensions].
func (pl *DynamicResourcesCEL) RemovePod(_ context.Context, state fwk.CycleState, _ *v1.Pod, gone fwk.PodInfo, _ fwk.NodeInfo) *fwk.Status {
	if s := simulationIn(state); s != nil && usesDevices(gone.GetPod()) {
		s.removed[gone.GetPod().UID] = gone.GetPod()
		s.without = nil
	}
	return nil
}

// AddPod implements [fwk.PreFilterExtensions]. A pod that is nominated to the node and was not there
// before has no devices yet; what was promised to it is held, see holding.go.
func (pl *DynamicResourcesCEL) AddPod(_ context.Context, state fwk.CycleState, _ *v1.Pod, back fwk.PodInfo, _ fwk.NodeInfo) *fwk.Status {
	if s := simulationIn(state); s != nil {
		if _, was := s.removed[back.GetPod().UID]; was {
			delete(s.removed, back.GetPod().UID)
			s.without = nil
		}
	}
	return nil
}

// Filter runs upstream's Filter, for what is or for what would be.
func (pl *DynamicResourcesCEL) Filter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	if pl.preempter != nil {
		if s := simulationIn(state); s != nil {
			ctx = context.WithValue(ctx, simulationInContext{}, s)
		}
	}
	return pl.DynamicResources.Filter(ctx, state, pod, node)
}

// allocate answers for the time when the pods are gone.
func (s *simulation) allocate(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	if over := s.attempt.Over(); over != nil {
		return nil, notLookedAt(s.attempt, over)
	}
	defer s.attempt.Progress()
	if s.without == nil {
		s.without = s.base.Without(s.released()...)
	}
	results, err := s.without.Allocate(ctx, node, claims)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.results[node.Name] = results
	return results, err
}

// released are the claims that give back their devices when the pods are gone.
func (s *simulation) released() []*resourceapi.ResourceClaim {
	var released []*resourceapi.ResourceClaim
	seen := sets.New[types.UID]()
	for _, pod := range s.removed {
		for _, claim := range s.pl.claimsOf(pod) {
			if seen.Has(claim.UID) || s.own.Has(claim.UID) {
				continue
			}
			seen.Insert(claim.UID)
			if has := s.givenBack(claim, pod); has != nil {
				released = append(released, s.withoutHeld(has))
			}
		}
	}
	return released
}

// givenBack is the claim with what it gives back, nil if it keeps it.
//
// The claim controller takes an allocation away when the last pod for which the claim is reserved is
// gone, whoever made the claim. A reservation for a PodGroup it takes away with the PodGroup only,
// which no eviction deletes; and one for anything else never (syncClaim in
// k8s.io/kubernetes/pkg/controller/resourceclaim). A claim that nobody uses keeps its devices.
func (s *simulation) givenBack(claim *resourceapi.ResourceClaim, pod *v1.Pod) *resourceapi.ResourceClaim {
	if claim.Status.Allocation == nil {
		// Evicting a pod that is being bound takes back what is just being allocated for it alone.
		pending := s.pl.claims.ResourceClaims().GetPendingAllocation(claim.UID)
		if pending == nil || pod.Spec.SchedulingGroup != nil || !metav1.IsControlledBy(claim, pod) {
			return nil
		}
		claim = claim.DeepCopy()
		claim.Status.Allocation = pending
		return claim
	}
	if len(claim.Status.ReservedFor) == 0 || !slices.Contains(claim.Finalizers, resourceapi.Finalizer) {
		return nil
	}
	for _, user := range claim.Status.ReservedFor {
		if _, gone := s.removed[user.UID]; !gone || user.APIGroup != "" || user.Resource != "pods" {
			return nil
		}
	}
	return claim
}

// withoutHeld is the claim as if it did not have what is held for others.
func (s *simulation) withoutHeld(claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	if !s.held.HasAny(idsOf(claim.Status.Allocation.Devices.Results)...) {
		return claim
	}
	claim = claim.DeepCopy()
	results := &claim.Status.Allocation.Devices.Results
	*results = slices.DeleteFunc(*results, func(result resourceapi.DeviceRequestAllocationResult) bool {
		return s.held.HasAny(idsOf([]resourceapi.DeviceRequestAllocationResult{result})...)
	})
	return claim
}

// usesDevices tells whether a pod may have devices of claims.
func usesDevices(pod *v1.Pod) bool {
	return len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil
}

// claimsOf are the claims of a pod that there are.
func (pl *DynamicResourcesCEL) claimsOf(pod *v1.Pod) []*resourceapi.ResourceClaim {
	var claims []*resourceapi.ResourceClaim
	add := func(name string) {
		if claim, err := pl.claims.ResourceClaims().Get(pod.Namespace, name); err == nil {
			claims = append(claims, claim)
		}
	}
	for i := range pod.Spec.ResourceClaims {
		if name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i]); err == nil && name != nil {
			add(*name)
		}
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		add(extended.ResourceClaimName)
	}
	return claims
}
