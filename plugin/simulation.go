// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"maps"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/preemption"
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
	claims  *podClaims
	attempt *guard.Attempt
	// base is the allocator for the time when nobody is gone.
	base *allocator.Allocator
	// release knows what others give back to the pod.
	release preemption.Release

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
	if s := simulationIn(state); s != nil && preemption.UsesDevices(gone.GetPod()) {
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

// allocate answers for the time when the pods are gone.
func (s *simulation) allocate(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	if over := s.attempt.Over(); over != nil {
		return nil, notLookedAt(s.attempt, over)
	}
	defer s.attempt.Progress()
	if s.without == nil {
		s.without = s.base.Without(s.release.Claims(s.removed)...)
	}
	results, err := s.without.Allocate(ctx, node, claims)
	err = noted(s.attempt, err)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.results[node.Name] = results
	return results, err
}
