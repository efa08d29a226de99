// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"context"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/extended"
	"github.com/celset/celset/allocator/preemption"
	"github.com/celset/celset/plugin/cycle"
	"github.com/celset/celset/plugin/hold"
)

// Preemption removes pods from a node in thought and runs the filters again. Upstream's plugin does not
// learn of it: for that Filter the devices of the pods are still taken. So while a preemption is being
// tried, the state of the scheduling cycle has a simulation, which learns of it by
// PreFilterExtensions, and Filter has the allocator answer for the time when the pods are gone.
//
// Upstream's Filter does the rest. The allocator that it calls finds the simulation in the context.

// simulationKey is the key of the *simulation in the state of a scheduling cycle.
const simulationKey fwk.StateKey = cycle.PluginName + "/preemption"

// preemptionTrial is what all simulations for one pod have together: each is about one node.
type preemptionTrial struct {
	holding *Holding
	pod     *v1.Pod
	claims  *cycle.PodClaims
	// base is the allocator for the time when nobody is gone.
	base *allocator.Allocator
	// release knows what others give back to the pod.
	release preemption.Release
	// promised are victims of pods of a lower priority, with that priority: to remove them breaks a hold.
	promised map[types.UID]int32
	// only are the victims of the hold whose evictions go on, nil for a new try.
	only sets.Set[types.UID]

	// mutex guards what follows.
	mutex sync.Mutex
	// results are what was allocated last on a node.
	results map[string][]hold.Claim
	// found is what was found out about nodes on which the pod would fit.
	found map[string]*foundVictims
	// fitsAlready is set if the pod fits on a node as it is, because devices have become free since Filter ran.
	fitsAlready bool
}

func (t *preemptionTrial) fits() bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.fitsAlready
}

// resume restricts the trial to the victims of a hold. Claims of victims that have gone count as free.
func (t *preemptionTrial) resume(held *hold.Hold) {
	t.only = sets.New(held.Victims...)
	var free []*resourceapi.ResourceClaim
	for _, claim := range t.holding.freedBy(held) {
		if claim.Status.Allocation == nil {
			continue
		}
		if !slices.ContainsFunc(claim.Status.ReservedFor, func(user resourceapi.ResourceClaimConsumerReference) bool {
			return t.holding.exists(claim.Namespace, user)
		}) {
			free = append(free, claim)
		}
	}
	if len(free) > 0 {
		t.base = t.base.Without(free...)
	}
}

// foundOn returns what was found out about a node, nil if it was not looked at.
func (t *preemptionTrial) foundOn(node string) *foundVictims {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.found[node]
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

// Simulating has the allocator answer for the simulation of a cycle, if there is one.
func (p *Preempter) Simulating(ctx context.Context, state fwk.CycleState) context.Context {
	if s := simulationIn(state); s != nil {
		return cycle.WithSubstitute(ctx, s)
	}
	return ctx
}

// Extensions returns the extensions of PreFilter, by which simulations learn of pods that are removed from a node.
func (p *Preempter) Extensions() fwk.PreFilterExtensions { return simulations{} }

// simulations implements [fwk.PreFilterExtensions].
type simulations struct{}

// RemovePod implements [fwk.PreFilterExtensions].
func (simulations) RemovePod(_ context.Context, state fwk.CycleState, _ *v1.Pod, gone fwk.PodInfo, _ fwk.NodeInfo) *fwk.Status {
	if s := simulationIn(state); s != nil && preemption.UsesDevices(gone.GetPod()) {
		s.removed[gone.GetPod().UID] = gone.GetPod()
		s.without = nil
	}
	return nil
}

// AddPod implements [fwk.PreFilterExtensions]. A pod that is nominated to the node and was not there
// before has no devices yet; what was promised to it is held, see holding.go.
func (simulations) AddPod(_ context.Context, state fwk.CycleState, _ *v1.Pod, back fwk.PodInfo, _ fwk.NodeInfo) *fwk.Status {
	if s := simulationIn(state); s != nil {
		if _, was := s.removed[back.GetPod().UID]; was {
			delete(s.removed, back.GetPod().UID)
			s.without = nil
		}
	}
	return nil
}

// Allocate answers for the time when the pods are gone.
func (s *simulation) Allocate(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	if over := s.claims.Attempt.Over(); over != nil {
		return nil, cycle.NotLookedAt(s.claims.Attempt, over)
	}
	defer s.claims.Attempt.Progress()
	if s.without == nil {
		s.without = s.base.Without(s.release.Claims(s.removed)...)
	}
	results, err := s.without.Allocate(ctx, node, claims)
	err = cycle.Noted(s.claims.Attempt, err)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.results[node.Name] = claimsWith(claims, results)
	return results, err
}

// claimsWith returns claims with their devices. The claim for extended resources gets no UID: it doesn't exist yet.
func claimsWith(claims []*resourceapi.ResourceClaim, results []resourceapi.AllocationResult) []hold.Claim {
	var with []hold.Claim
	for i := range min(len(results), len(claims)) {
		if len(results[i].Devices.Results) == 0 {
			continue
		}
		claim := hold.Claim{UID: claims[i].UID, Name: claims[i].Name}
		if claims[i].Name == extended.ClaimName {
			claim.UID = ""
		}
		for _, r := range results[i].Devices.Results {
			claim.Devices = append(claim.Devices, resourceapi.DeviceRequestAllocationResult{
				Driver: r.Driver, Pool: r.Pool, Device: r.Device, AdminAccess: r.AdminAccess, ShareID: r.ShareID, ConsumedCapacity: r.ConsumedCapacity,
			})
		}
		with = append(with, claim)
	}
	return with
}
