// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"

	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/plugin/guard"
)

// Which nodes can take a pod of a group does not depend on the other pods: the filters are asked for one pod of each kind.

// askedAlone is in the state of a cycle in which a pod of a group is asked for by itself, to find out which nodes can take
// it. All such cycles are part of the attempt of the group.
type askedAlone struct {
	attempt *guard.Attempt
	// sets lists what the pod may get, if that matters to the group.
	sets *podSets
}

// Clone implements [fwk.StateData].
func (a *askedAlone) Clone() fwk.StateData { return a }

const askedAloneKey fwk.StateKey = NodeSetsName + "/alone"

func askedAloneIn(state fwk.CycleState) *askedAlone {
	data, err := state.Read(askedAloneKey)
	if err != nil {
		return nil
	}
	a, _ := data.(*askedAlone)
	return a
}

// askForEachKind sorts the pods by kind and finds out which nodes can take one of each.
func (pl *NodeSets) askForEachKind(ctx context.Context, groupState fwk.PodGroupCycleState, s *groupSearch, pods, scheduled []*v1.Pod) (nodeset.Refusals, *fwk.Status) {
	var of []*v1.Pod
	known := map[[sha256.Size]byte]int{}
	for _, pod := range pods {
		if status := s.over(); !status.IsSuccess() {
			return nil, status
		}
		key, err := pl.kindOf(pod, s.lists)
		if err != nil {
			return nil, fwk.AsStatus(err)
		}
		kind, seen := known[key]
		if !seen {
			kind = len(of)
			known[key] = kind
			of = append(of, pod)
		}
		s.kinds[pod.UID] = kind
	}
	s.nodes, s.why = make([]nodeset.Node, len(s.infos)), make([]string, len(s.infos))
	running := map[string]int{}
	for _, pod := range scheduled {
		running[pod.Spec.NodeName]++
		if _, among := slices.BinarySearchFunc(s.infos, pod.Spec.NodeName, func(info fwk.NodeInfo, name string) int { return cmp.Compare(info.Node().Name, name) }); !among {
			return nil, refused(fwk.Unschedulable, s.infos, fmt.Sprintf("pod %s of the group runs on node %s, which can't be in a set", pod.Name, pod.Spec.NodeName))
		}
	}
	s.seats = map[string]int{}
	for i, info := range s.infos {
		node := info.Node()
		s.nodes[i] = nodeset.Node{Name: node.Name, Labels: node.Labels, Placed: running[node.Name] > 0, Takes: make([]bool, len(of)), Sets: make([][]nodeset.Set, len(of))}
	}
	if s.lists {
		if err := pl.addPlaced(s, scheduled); err != nil {
			return nil, refused(fwk.UnschedulableAndUnresolvable, s.infos, err.Error())
		}
	}
	all := make(nodeset.Refusals, len(of))
	for kind, pod := range of {
		state := framework.NewCycleState()
		state.SetPodGroupSchedulingCycle(groupState)
		alone, unallocated, err := pl.alone(s, pod)
		if err != nil {
			return nil, fwk.AsStatus(err)
		}
		state.Write(askedAloneKey, alone)
		statuses, status := pl.ask(ctx, state, pod, s.infos)
		if !status.IsSuccess() {
			return nil, status
		}
		if status := s.over(); !status.IsSuccess() {
			return nil, status
		}
		if s.listed.Load() > nodeset.MaxSetBytes {
			return nil, refused(fwk.UnschedulableAndUnresolvable, s.infos, fmt.Sprintf(
				"the sets of devices that the pods of the group may get on all nodes take more than %d MiB: narrow the nodes with a nodeSelector, or the devices by selectors or constraints in the claims", nodeset.MaxSetBytes>>20))
		}
		all[kind] = map[string]int{}
		for i, status := range statuses {
			if s.lists && s.nodes[i].Placed {
				continue
			}
			if status.IsSuccess() && s.lists {
				s.nodes[i].Sets[kind], status = alone.sets.of(s.nodes[i].Name, unallocated)
			}
			if status.IsSuccess() {
				s.nodes[i].Takes[kind] = true
			} else {
				why := strings.Join(status.Reasons(), ", ")
				s.nodes[i].Elsewhere = status.Plugin() == nodeaffinity.Name
				all[kind][why]++
				s.why[i] = cmp.Or(s.why[i], why)
			}
		}
	}
	for i := range s.nodes {
		n := &s.nodes[i]
		if free := s.constraint.PodsPerNode - running[n.Name]; n.Placed && free > 0 && slices.Contains(n.Takes, true) {
			s.seats[n.Name] = free
		}
	}
	return all, nil
}

// ask runs PreFilter and Filter of all plugins for a pod.
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
	}, NodeSetsName)
	for i := range statuses {
		if failures[i] != nil {
			return nil, failures[i]
		}
	}
	if ctx.Err() != nil {
		// Not all nodes were looked at.
		return nil, fwk.AsStatus(context.Cause(ctx))
	}
	return statuses, nil
}

// ofOnePod are labels that pods of a group have to be told apart: which nodes can take a pod does not depend on them.
var ofOnePod = []string{
	"batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name",
	"leaderworkerset.sigs.k8s.io/worker-index", "jobset.sigs.k8s.io/job-index", "jobset.sigs.k8s.io/job-key", "jobset.sigs.k8s.io/job-global-index",
}

// kindOf is the same for pods that all nodes treat alike: what filters look at is. exact: what one gets another may get, and
// what its claims say besides.
func (pl *NodeSets) kindOf(pod *v1.Pod, exact bool) (sum [sha256.Size]byte, err error) {
	labels := maps.Clone(pod.Labels)
	for _, name := range ofOnePod {
		delete(labels, name)
	}
	type container struct {
		Resources v1.ResourceRequirements
		Ports     []v1.ContainerPort
		Restart   *v1.ContainerRestartPolicy
	}
	var containers [][]container
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		var own []container
		for i := range list {
			own = append(own, container{list[i].Resources, list[i].Ports, list[i].RestartPolicy})
		}
		containers = append(containers, own)
	}
	var claims []string
	for _, claim := range claimsOfPods(pl.handle, []*v1.Pod{pod}) {
		common := pl.groups.contentOf(claim, pl.handle.SharedDRAManager().DeviceClasses())
		if !common.ok || claim.Status.Allocation != nil {
			claims = append(claims, string(claim.UID))
			continue
		}
		claims = append(claims, fmt.Sprintf("%x", common.Content))
		if exact {
			raw, err := json.Marshal(claim.Spec)
			if err != nil {
				return sum, err
			}
			claims = append(claims, string(raw))
		}
	}
	spec := &pod.Spec
	raw, err := json.Marshal([]any{
		labels, containers, claims, spec.NodeSelector, spec.Affinity, spec.Tolerations, spec.TopologySpreadConstraints, spec.Overhead,
		spec.Resources, volumesThatMatter(spec.Volumes), spec.HostNetwork, spec.NodeName, spec.OS, spec.RuntimeClassName, len(spec.ResourceClaims),
	})
	return sha256.Sum256(raw), err
}

// volumesThatMatter are those by which nodes are chosen.
func volumesThatMatter(volumes []v1.Volume) []v1.Volume {
	return slices.DeleteFunc(slices.Clone(volumes), func(v v1.Volume) bool {
		return v.ConfigMap != nil || v.Secret != nil || v.EmptyDir != nil || v.Projected != nil || v.DownwardAPI != nil || v.HostPath != nil
	})
}
