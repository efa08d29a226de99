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

// Upstream's preemption removes pods from a copy of the node and runs the filters again. Upstream's DynamicResources plugin
// would still count the devices of the removed pods as in use. So a preemption stores a simulation in the cycle state.
// PreFilterExtensions tell the simulation which pods are removed. [Preempter.Simulating] puts the simulation into the context
// of upstream's Filter, and the cycle's allocator calls the simulation instead of searching.

// simulationKey is the CycleState key of the *simulation.
const simulationKey fwk.StateKey = cycle.PluginName + "/preemption"

// preemptionTrial is the state that the simulations on all nodes share during one preemption.
type preemptionTrial struct {
	holding *Holding
	pod     *v1.Pod
	claims  *cycle.PodClaims
	// base is the allocator for the cluster's current state, without any removed pods.
	base *allocator.Allocator
	// release determines which claims are deallocated when given pods are gone.
	release preemption.Release
	// promised maps each victim of a lower-priority preemptor to the priority of that preemptor. A pod that gets the devices of
	// such a victim breaks the hold of that preemptor.
	promised map[types.UID]int32
	// only holds the victims of the resumed hold. It is nil if the preemptor has no hold yet.
	only sets.Set[types.UID]

	// mutex guards the fields below.
	mutex sync.Mutex
	// results maps a node to the allocation that the last search there found.
	results map[string][]hold.Claim
	// found maps a node to its victims. Only nodes where the preemptor would fit are present.
	found map[string]*foundVictims
	// fitsAlready is set if the pod fits on a node without evictions, because devices have become free since Filter ran.
	fitsAlready bool
}

func (t *preemptionTrial) fits() bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.fitsAlready
}

// resume restricts the trial to the victims of a hold. Claims of the hold count as free if all of their users are gone.
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

// foundOn returns the victims on a node. It returns nil if the node was not simulated or if no evictions there help.
func (t *preemptionTrial) foundOn(node string) *foundVictims {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.found[node]
}

// simulation simulates evictions on one node. Each clone of the cycle state has its own copy.
type simulation struct {
	*preemptionTrial
	// removed maps UIDs to the pods that count as evicted.
	removed map[types.UID]*v1.Pod
	// without is the allocator for the state without the removed pods. It is nil if removed has changed since.
	without *allocator.Allocator
}

// Clone implements [fwk.StateData].
func (s *simulation) Clone() fwk.StateData {
	return &simulation{preemptionTrial: s.preemptionTrial, removed: maps.Clone(s.removed), without: s.without}
}

// simulationIn returns the simulation in the cycle state, or nil if no preemption is running.
func simulationIn(state fwk.CycleState) *simulation {
	data, err := state.Read(simulationKey)
	if err != nil {
		return nil
	}
	s, _ := data.(*simulation)
	return s
}

// Simulating implements [Preemption].
func (p *Preempter) Simulating(ctx context.Context, state fwk.CycleState) context.Context {
	if s := simulationIn(state); s != nil {
		return cycle.WithSubstitute(ctx, s)
	}
	return ctx
}

// Extensions returns the extensions that tell a simulation which pods are removed from a node and which are added back.
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

// AddPod implements [fwk.PreFilterExtensions]. Upstream also adds pods that are only nominated to the node. These have no
// devices yet, and devices held for them already count as in use (holding.go).
func (simulations) AddPod(_ context.Context, state fwk.CycleState, _ *v1.Pod, back fwk.PodInfo, _ fwk.NodeInfo) *fwk.Status {
	if s := simulationIn(state); s != nil {
		if _, was := s.removed[back.GetPod().UID]; was {
			delete(s.removed, back.GetPod().UID)
			s.without = nil
		}
	}
	return nil
}

// Allocate searches for devices as if the removed pods were gone.
func (s *simulation) Allocate(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	if over := s.claims.Attempt.Over(); over != nil {
		return nil, cycle.SkippedNode(s.claims.Attempt, over)
	}
	defer s.claims.Attempt.Progress()
	if s.without == nil {
		s.without = s.base.Without(s.release.Claims(s.removed)...)
	}
	results, err := s.without.Allocate(ctx, node, claims)
	err = cycle.RecordedError(s.claims.Attempt, err)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.results[node.Name] = claimsWith(claims, results)
	return results, err
}

// claimsWith combines claims with the devices found for them. The claim for extended resources has no UID, because it doesn't
// exist yet.
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
