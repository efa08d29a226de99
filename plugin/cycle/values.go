// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cycle

import (
	"cmp"
	"context"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/allocator"
)

// NodeValues maps each node to the preference values of the devices that Filter found there for a pod. It has a lock because
// Filter runs for several nodes at the same time.
type NodeValues struct {
	mutex  sync.RWMutex
	byNode map[string]allocator.Details
}

// note records the preference values of the devices that were found last on a node. If the node is chosen, the pod gets these
// devices.
func (v *NodeValues) note(ctx context.Context, node string, details allocator.Details) {
	if len(details.Preferences) > 0 {
		klog.FromContext(ctx).V(5).Info("Preferences have chosen devices", "node", klog.KRef("", node), "outcome", details.Outcome, "values", details.Preferences)
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	switch {
	case len(details.Preferences) == 0:
		delete(v.byNode, node)
	case v.byNode == nil:
		v.byNode = map[string]allocator.Details{node: details}
	default:
		v.byNode[node] = details
	}
}

// Of returns the preference values of the devices found on a node.
func (v *NodeValues) Of(node string) allocator.Details {
	v.mutex.RLock()
	defer v.mutex.RUnlock()
	return v.byNode[node]
}

// NodeValuesIn returns the NodeValues in the cycle state. It returns nil if upstream's allocator is used.
func NodeValuesIn(state fwk.CycleState) *NodeValues {
	if c := ClaimsIn(state); c != nil && c.Ours != nil {
		return &c.Ours.values
	}
	return nil
}

// LogChoice logs the preference values of the devices on the chosen node.
func LogChoice(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) {
	logger := klog.FromContext(ctx).V(4)
	if !logger.Enabled() {
		return
	}
	if values := NodeValuesIn(state); values != nil {
		if details := values.Of(node); len(details.Preferences) > 0 {
			logger.Info("Preferences have chosen the devices of the pod", "pod", klog.KObj(pod), "node", klog.KRef("", node), "outcome", details.Outcome, "values", details.Preferences)
		}
	}
}

// compareValues compares the preference values of two nodes, as lists of pairs. The first difference decides. A missing value
// is less than any other value.
func compareValues(a, b []allocator.PreferenceValue) int {
	for i := range min(len(a), len(b)) {
		// Values are sorted by claim and preference. If the first difference is there, the node with the greater pair lacks a value.
		if order := comparePlaces(a[i], b[i]); order != 0 {
			return -order
		}
		if order := cmp.Compare(a[i].Value, b[i].Value); order != 0 {
			return order
		}
	}
	return cmp.Compare(len(a), len(b))
}

func comparePlaces(a, b allocator.PreferenceValue) int {
	return cmp.Or(cmp.Compare(a.Claim, b.Claim), cmp.Compare(a.Preference, b.Preference))
}

// Scores returns the scores of the nodes that passed Filter. Nodes are ranked by their preference values. The best rank gets
// the maximum score, the worst gets 0, and the others are evenly spaced. The result is nil if all nodes have equal values.
func (v *NodeValues) Scores(nodes []fwk.NodeInfo) map[string]int64 {
	v.mutex.RLock()
	defer v.mutex.RUnlock()
	if len(v.byNode) == 0 {
		return nil
	}
	all := make([][]allocator.PreferenceValue, 0, len(nodes))
	for _, node := range nodes {
		all = append(all, v.byNode[node.Node().Name].Preferences)
	}
	ranked := slices.Clone(all)
	slices.SortFunc(ranked, compareValues)
	ranked = slices.CompactFunc(ranked, func(a, b []allocator.PreferenceValue) bool { return compareValues(a, b) == 0 })
	best := len(ranked) - 1
	if best < 1 {
		return nil
	}
	result := make(map[string]int64, len(nodes))
	for i, node := range nodes {
		rank, _ := slices.BinarySearchFunc(ranked, all[i], compareValues)
		result[node.Node().Name] = fwk.MaxScore * int64(rank) / int64(best)
	}
	return result
}
