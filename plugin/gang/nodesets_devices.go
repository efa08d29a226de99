// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/plugin/cycle"
)

// If a node set constraint reads devices, one pod of each kind is first tried alone. This trial lists the device sets that such
// a pod may get on each node. The search chooses one of these sets. When the pod is tried with its group, it gets the chosen
// set.

// DevicesIn returns the GroupDevices in the cycle state of a pod of a group. They allocate the pod's devices instead of the
// allocator. DevicesIn returns nil if the allocator searches as usual.
func DevicesIn(state fwk.CycleState, pod *v1.Pod) cycle.GroupDevices {
	if alone := askedAloneIn(state); alone != nil {
		return alone.devices
	}
	if s := groupSearchIn(state); s != nil {
		if at := s.tried.assigned[pod.UID]; at != nil && at.devices != nil {
			return at.devices
		}
	}
	return nil
}

// podSets lists the device sets that a pod of one kind may get on each node.
type podSets struct {
	reads *nodeset.Reading
	// has holds the devices of the pod's allocated claims.
	has []allocator.AllocatedDevice
	// bytes is the size in bytes of all listed device sets. The podSets of all kinds share it.
	bytes *atomic.Int64

	mutex sync.Mutex
	// on maps the name of a node to the device sets there. Nodes without a suitable set are absent.
	on map[string][]nodeset.Set
}

func (l *podSets) Allocate(ctx context.Context, a *allocator.Allocator, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	if l.bytes.Load() > nodeset.MaxSetBytes {
		return nil, structured.ErrFailedAllocationOnNode
	}
	listed, err := l.reads.SetsOn(ctx, a, node, claims, l.has)
	if err != nil || len(listed) == 0 {
		return nil, err
	}
	for i := range listed {
		l.bytes.Add(int64(listed[i].Bytes()))
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.on[node.Name] = listed
	return slices.Clone(listed[0].Results), nil
}

// of returns the device sets that the pod may get on a node. unallocated is true if the pod has unallocated claims.
func (l *podSets) of(node string, unallocated bool) ([]nodeset.Set, *fwk.Status) {
	if listed := l.on[node]; listed != nil || unallocated {
		if listed == nil {
			return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the devices that the pod may get are not known: enable the plugin "+cycle.PluginName)
		}
		return listed, nil
	}
	set, err := l.reads.SetOf(l.has, nil)
	if err != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	return []nodeset.Set{set}, nil
}

// alone returns the state for trying one pod of a kind alone on each node.
func (pl *NodeSets) alone(s *groupSearch, kind int) (*askedAlone, error) {
	alone, k := &askedAlone{attempt: s.attempt}, s.hosts.kinds[kind]
	switch {
	case s.ReadsDevices:
		k.sets = &podSets{reads: s.reads, bytes: &s.hosts.listedBytes, on: map[string][]nodeset.Set{}}
		alone.devices = k.sets
		var err error
		k.sets.has, k.unallocated, err = pl.devicesOf(k.pods[0])
		return alone, err
	case s.Constraint.PodsPerNode > 1 || s.hosts.mayCompete || len(s.hosts.shared) > 0:
		k.together = &groupAllocator{hosts: s.hosts, kind: kind, claims: map[string][]*resourceapi.ResourceClaim{}}
		alone.devices = k.together
	}
	return alone, nil
}

// addPlaced records the devices of the group's running pods at the nodes where these pods run.
func (pl *NodeSets) addPlaced(s *groupSearch, scheduled []*v1.Pod) error {
	on := map[string][]allocator.AllocatedDevice{}
	for _, pod := range scheduled {
		devices, _, err := pl.devicesOf(pod)
		if err != nil {
			return err
		}
		on[pod.Spec.NodeName] = append(on[pod.Spec.NodeName], devices...)
	}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Placed {
			var err error
			if n.Has, err = s.reads.SetOf(on[n.Name], nil); err != nil {
				return fmt.Errorf("node %s, on which a pod of the group runs: %w", n.Name, err)
			}
		}
	}
	return nil
}

// sharedClaims returns the names of unallocated claims that at least two of the pods use.
func sharedClaims(handle fwk.Handle, pods []*v1.Pod) sets.Set[string] {
	seen, shared := sets.New[string](), sets.New[string]()
	for _, pod := range pods {
		for i := range pod.Spec.ResourceClaims {
			name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
			if err != nil || name == nil {
				continue
			}
			if seen.Has(*name) && !shared.Has(*name) {
				if claim, err := handle.SharedDRAManager().ResourceClaims().Get(pod.Namespace, *name); err != nil || claim.Status.Allocation == nil {
					shared.Insert(*name)
				}
			}
			seen.Insert(*name)
		}
	}
	return shared
}

// devicesOf returns the devices of a pod's allocated claims. unallocated is true if the pod also has unallocated claims.
func (pl *NodeSets) devicesOf(pod *v1.Pod) (devices []allocator.AllocatedDevice, unallocated bool, err error) {
	var all []*resourceapi.ResourceSlice
	claims := claimsOfPods(pl.handle, []*v1.Pod{pod})
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		if claim, err := pl.handle.SharedDRAManager().ResourceClaims().Get(pod.Namespace, extended.ResourceClaimName); err == nil {
			claims = append(claims, claim)
		}
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			unallocated = true
			continue
		}
		if all == nil {
			if all, err = pl.slices.ListWithDeviceTaintRules(); err != nil {
				return nil, false, err
			}
		}
		for i := range claim.Status.Allocation.Devices.Results {
			devices = append(devices, nodeset.Published(&claim.Status.Allocation.Devices.Results[i], all))
		}
	}
	return devices, unallocated, nil
}
