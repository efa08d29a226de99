// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/celset/celset/plugin/cycle"
)

// On a fragmented cluster most nodes may refuse a pod, for a reason found with an earlier pod that had the same claims. Looking
// up such a refusal takes a fraction of the time that the scheduler spends on a node. So if many nodes refuse, PreFilter
// returns only the other nodes, and the scheduler visits only these.
//
// The outcome must not change:
//
//  1. A claim's fit on a node depends only on the devices in use, not on preempted or nominated pods. So a refusal holds for
//     the whole cycle.
//  2. A pod that fits nowhere must get the same statuses. The scheduler would give one status to all nodes that PreFilter left
//     out. So PostFilter runs all filters on these nodes and fills in their statuses before other plugins read them. The
//     message, preemption and the nearest miss then cover all nodes.
//
// Only pods that fit become faster. If all nodes refuse, the scheduler visits all of them.

const (
	// fewNodes is the number of nodes below which the scheduler visits all nodes.
	fewNodes = 64
	// sampledNodes is the number of nodes whose refusals are looked up first. If less than half of them refuse, the scheduler
	// finds enough feasible nodes anyway, and passOver leaves all nodes.
	sampledNodes = 64
)

// passOver returns the nodes that don't refuse the pod, and stores the refusing nodes in c. It returns nil if the scheduler
// must visit all nodes: few nodes refuse, the statuses can't be filled in later, or the pod's extended resources get a
// different claim on each node.
func (pl *DynamicResourcesCEL) passOver(state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo, c *cycle.PodClaims) *fwk.PreFilterResult {
	if len(nodes) < fewNodes || !pl.isFirstAfterFilter() || state.IsPodGroupSchedulingCycle() || c.Extended != nil || namesNodes(pod) {
		return nil
	}
	refusals := c.Ours.RefusalsOf(c.Unallocated)
	if refusals == nil {
		return nil
	}
	refused := 0
	for i := range sampledNodes {
		if refusals.Has(nodes[i*len(nodes)/sampledNodes].Node()) {
			refused++
		}
	}
	if refused < sampledNodes/2 {
		return nil
	}
	refusals.ForMany()
	left := sets.New[string]()
	passedOver := make([]fwk.NodeInfo, 0, len(nodes))
	for _, info := range nodes {
		if node := info.Node(); refusals.Has(node) {
			passedOver = append(passedOver, info)
		} else {
			left.Insert(node.Name)
		}
	}
	if len(left) == 0 || len(passedOver) == 0 {
		return nil
	}
	c.Ours.PassedOver = passedOver
	return &fwk.PreFilterResult{NodeNames: left}
}

// isFirstInPostFilter reports whether this plugin's PostFilter runs before all others.
func isFirstInPostFilter(handle fwk.Handle) bool {
	lister, is := handle.(interface{ ListPlugins() *config.Plugins })
	if !is {
		return false
	}
	enabled := lister.ListPlugins().PostFilter.Enabled
	return len(enabled) > 0 && enabled[0].Name == Name
}

// namesNodes reports whether the pod selects nodes by name, so that another plugin's PreFilter returns those nodes. The
// scheduler would then lose that plugin's statuses for the other nodes, and passing nodes over would save little time.
func namesNodes(pod *v1.Pod) bool {
	if pod.Spec.NodeName != "" {
		return true
	}
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if len(term.MatchFields) > 0 {
			return true
		}
	}
	return false
}

// fillPassedOver runs all filters on the nodes that were passed over, and adds the statuses to nodes.
func (pl *DynamicResourcesCEL) fillPassedOver(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes fwk.NodeToStatusReader, c *cycle.PodClaims) {
	ours := c.Ours
	statuses, is := nodes.(*framework.NodeToStatus)
	if ours == nil || len(ours.PassedOver) == 0 || !is {
		return
	}
	said := make([]*fwk.Status, len(ours.PassedOver))
	pl.handle.Parallelizer().Until(ctx, len(said), func(i int) {
		said[i] = pl.handle.RunFilterPluginsWithNominatedPods(ctx, state, pod, ours.PassedOver[i])
	}, schedulermetrics.Filter)
	for i, status := range said {
		if status.IsRejected() {
			statuses.Set(ours.PassedOver[i].Node().Name, status)
		}
	}
	ours.PassedOver = nil
}
