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

// On a fragmented cluster most nodes may refuse a pod, for a reason that is known since the last
// pod that asked for the same. To look that up takes a fraction of what the scheduler does for
// each node that it visits. So where many nodes are known to refuse, PreFilter leaves the others,
// and the scheduler visits only these.
//
// Nothing else may change. That a claim does not fit depends on devices alone, which are in use
// whether or not pods are preempted or nominated: a node that is known to refuse does so in every
// trial of this cycle. And what is said of a pod that fits nowhere stays what it was. The
// scheduler would say one thing of all nodes that PreFilter left out. So PostFilter, which is
// called then, has all filters run on them after all, and fills in what they say before anybody
// else reads it: the message, preemption and the nearest miss are told of all nodes.
//
// Pods that fit are what is made faster. If all nodes are known to refuse they are all visited.

const (
	// fewNodes are visited in any case.
	fewNodes = 64
	// sampledNodes are asked first: if less than half of them refuse, the scheduler has found
	// as many as it wants before it comes to the others.
	sampledNodes = 64
)

// passOver returns the nodes that are left if those are passed over that are known to refuse the
// pod, and keeps the latter. It is nil if all are to be visited: also if the nodes that are passed over can't be reported
// later, or if each is asked about another claim.
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

// isFirstInPostFilter tells whether nobody is told of the nodes before our PostFilter is.
func isFirstInPostFilter(handle fwk.Handle) bool {
	lister, is := handle.(interface{ ListPlugins() *config.Plugins })
	if !is {
		return false
	}
	enabled := lister.ListPlugins().PostFilter.Enabled
	return len(enabled) > 0 && enabled[0].Name == Name
}

// namesNodes tells whether another plugin leaves some nodes only: what it says of the others
// would be lost, and there is nothing to be gained.
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

// fillPassedOver fills in what the filters say of the nodes that were passed over.
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
