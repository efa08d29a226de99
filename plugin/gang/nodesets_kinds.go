// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"

	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/plugin/cycle"
	"github.com/celset/celset/plugin/guard"
)

// The filters run for one pod of each kind, to find the nodes that can take such a pod alone. The search later tests several
// pods on one node, but only on nodes that it considers (nodesets_hosts.go).

// askedAlone marks a cycle state that only tests which nodes can take a pod of a group. The time of such tests counts for the
// attempt of the group.
type askedAlone struct {
	attempt *guard.Attempt
	// devices allocates the pod's claims. If it is nil, the allocator allocates them.
	devices cycle.GroupDevices
	// beside has the pods to test together on the node, including this pod. It is nil if this pod is tried alone.
	beside *loadBeside
}

// Clone implements [fwk.StateData].
func (a *askedAlone) Clone() fwk.StateData { return a }

const askedAloneKey fwk.StateKey = Name + "/alone"

func askedAloneIn(state fwk.CycleState) *askedAlone {
	data, err := state.Read(askedAloneKey)
	if err != nil {
		return nil
	}
	a, _ := data.(*askedAlone)
	return a
}

// groupKind is a set of equivalent pods of a group: the filters give the same result for each of them on every node.
type groupKind struct {
	pods []*v1.Pod
	// state is the cycle state of the first pod after PreFilter.
	state fwk.CycleState
	// sets lists the device sets for one pod, if the expression reads devices. unallocated is set if the pods have unallocated
	// claims.
	sets        *podSets
	unallocated bool
	// together allocates the claims of several pods together. It is nil if no two pods can get the same devices.
	together *groupAllocator
}

// askForEachKind sorts the pods by kind, and finds the nodes that can take one pod of each kind. The result counts the other
// nodes of each kind by reason.
func (pl *NodeSets) askForEachKind(ctx context.Context, groupState fwk.PodGroupCycleState, s *groupSearch, scheduled []*v1.Pod) (nodeset.Refusals, *fwk.Status) {
	if err := pl.sortByKind(s); err != nil {
		return nil, fwk.AsStatus(err)
	}
	running, seen := map[string][]*v1.Pod{}, map[string][]device.OfPod{}
	for _, pod := range scheduled {
		running[pod.Spec.NodeName] = append(running[pod.Spec.NodeName], pod)
		if s.reads.Pods() {
			seen[pod.Spec.NodeName] = append(seen[pod.Spec.NodeName], s.reads.OfPod(pod))
		}
		if _, among := slices.BinarySearchFunc(s.infos, pod.Spec.NodeName, func(info fwk.NodeInfo, name string) int { return cmp.Compare(info.Node().Name, name) }); !among {
			why := fmt.Sprintf("pod %s of the group runs on node %s, which is not available to the group: make the node available, or delete the pod", pod.Name, pod.Spec.NodeName)
			pl.unavailable(s, wellknown.ReasonNoNodeSet, why)
			return nil, refused(fwk.Unschedulable, s.infos, why)
		}
	}
	s.Nodes, s.why = make([]nodeset.Node, len(s.infos)), make([]string, len(s.infos))
	kinds := len(s.hosts.kinds)
	for i, info := range s.infos {
		node := info.Node()
		s.Nodes[i] = nodeset.Node{
			Name: node.Name, Labels: node.Labels, Placed: len(running[node.Name]) > 0, Free: s.Constraint.PodsPerNode - len(running[node.Name]), Pods: running[node.Name], Running: seen[node.Name],
			Takes: make([]bool, kinds), Elsewhere: make([]bool, kinds), Sets: make([][]nodeset.Set, kinds),
		}
	}
	if s.reads.Slices() {
		if err := pl.addSlices(s); err != nil {
			return nil, fwk.AsStatus(err)
		}
	}
	if s.ReadsDevices {
		if err := pl.addPlaced(s, scheduled); err != nil {
			return nil, refused(fwk.UnschedulableAndUnresolvable, s.infos, err.Error())
		}
	}
	s.hosts.mayCompete = !s.ReadsDevices && s.hosts.haveClaims() && s.hosts.areDevicesShared()
	refusals := make(nodeset.Refusals, kinds)
	for kind := range s.hosts.kinds {
		var status *fwk.Status
		if refusals[kind], status = pl.askForKind(ctx, groupState, s, kind); !status.IsSuccess() {
			return nil, status
		}
	}
	return refusals, nil
}

// sortByKind assigns each pod to its kind. Kinds are numbered in the order of their first pods.
func (pl *NodeSets) sortByKind(s *groupSearch) error {
	known := map[[sha256.Size]byte]int{}
	for _, pod := range s.pods {
		claims, err := pl.claimKeys(pod, s.ReadsDevices)
		if err != nil {
			return err
		}
		key, err := s.reads.KindOf(pod, claims)
		if err != nil {
			return err
		}
		kind, seen := known[key]
		if !seen {
			kind = len(s.hosts.kinds)
			known[key] = kind
			s.hosts.kinds = append(s.hosts.kinds, &groupKind{})
			s.Kinds = append(s.Kinds, 0)
			if s.reads.Pods() {
				s.Pods = append(s.Pods, s.reads.OfPod(pod))
			}
		}
		s.hosts.kinds[kind].pods = append(s.hosts.kinds[kind].pods, pod)
		s.hosts.kindOf[pod.UID] = kind
		s.Kinds[kind]++
	}
	s.Waiting = make([][]*v1.Pod, len(s.hosts.kinds))
	for kind, k := range s.hosts.kinds {
		s.Waiting[kind] = slices.SortedFunc(slices.Values(k.pods), nodeset.ComparePods)
	}
	return nil
}

// askForKind finds the nodes that can take one pod of a kind. The result counts the other nodes by reason.
func (pl *NodeSets) askForKind(ctx context.Context, groupState fwk.PodGroupCycleState, s *groupSearch, kind int) (map[string]int, *fwk.Status) {
	k := s.hosts.kinds[kind]
	pod := k.pods[0]
	if status := s.over(); !status.IsSuccess() {
		return nil, status
	}
	k.state = framework.NewCycleState()
	k.state.(*framework.CycleState).SetPodGroupSchedulingCycle(groupState)
	alone, err := pl.alone(s, kind)
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	k.state.Write(askedAloneKey, alone)
	statuses, status := pl.ask(ctx, k.state, pod, s.infos)
	if !status.IsSuccess() {
		return nil, status
	}
	if status := s.over(); !status.IsSuccess() {
		return nil, status
	}
	if s.hosts.listedBytes.Load() > nodeset.MaxSetBytes {
		return nil, refused(fwk.UnschedulableAndUnresolvable, s.infos, fmt.Sprintf(
			"the sets of devices that the pods of the group may get on all nodes take more than %d MiB: narrow the nodes with a nodeSelector, or the devices by selectors or constraints in the claims", nodeset.MaxSetBytes>>20))
	}
	refusals := map[string]int{}
	for i, status := range statuses {
		n := &s.Nodes[i]
		if s.ReadsDevices && n.Placed {
			continue
		}
		if status.IsSuccess() && s.ReadsDevices {
			n.Sets[kind], status = k.sets.of(n.Name, k.unallocated)
		}
		if n.Takes[kind] = status.IsSuccess(); n.Takes[kind] {
			continue
		}
		why := strings.Join(status.Reasons(), ", ")
		n.Elsewhere[kind] = status.Plugin() == nodeaffinity.Name
		refusals[why]++
		s.why[i] = cmp.Or(s.why[i], why)
	}
	return refusals, nil
}

// ask runs PreFilter and Filter of all plugins for a pod. It returns one status for each node.
func (pl *NodeSets) ask(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) ([]*fwk.Status, *fwk.Status) {
	statuses := make([]*fwk.Status, len(nodes))
	result, status, _ := pl.runner.RunPreFilterPlugins(ctx, state, pod)
	switch {
	case status.IsRejected():
		for i := range statuses {
			statuses[i] = status
		}
		return statuses, nil
	case !status.IsSuccess():
		return nil, status
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failures := make([]*fwk.Status, len(nodes))
	pl.handle.Parallelizer().Until(ctx, len(nodes), func(i int) {
		if !result.AllNodes() && !result.NodeNames.Has(nodes[i].Node().Name) {
			statuses[i] = fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node(s) didn't satisfy PreFilter")
			return
		}
		statuses[i] = pl.handle.RunFilterPluginsWithNominatedPods(ctx, state, pod, nodes[i])
		if statuses[i].IsError() {
			failures[i] = statuses[i]
			cancel()
		}
	}, Name)
	for i := range statuses {
		if failures[i] != nil {
			return nil, failures[i]
		}
	}
	if ctx.Err() != nil {
		// The context ended, so some nodes were not tested.
		return nil, fwk.AsStatus(context.Cause(ctx))
	}
	return statuses, nil
}

// claimKeys returns keys for the claims of a pod. If the keys of two pods are equal, their claims fit on the same nodes. If
// exact is set, the keys contain the claims' specs, so that the claims can also get the same device sets. The key of a claim
// that is allocated or not compiled is its UID.
func (pl *NodeSets) claimKeys(pod *v1.Pod, exact bool) (keys []string, err error) {
	for _, claim := range claimsOfPods(pl.handle, []*v1.Pod{pod}) {
		common, ok := pl.groups.preparing.ContentOf(claim, pl.handle.SharedDRAManager().DeviceClasses())
		if !ok || claim.Status.Allocation != nil {
			keys = append(keys, string(claim.UID))
			continue
		}
		keys = append(keys, fmt.Sprintf("%x", common))
		if exact {
			raw, err := json.Marshal(claim.Spec)
			if err != nil {
				return nil, err
			}
			keys = append(keys, string(raw))
		}
	}
	return keys, nil
}
