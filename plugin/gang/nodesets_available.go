// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/wellknown"
)

// simulationGap is the time after a failed search during which the next search of the group counts as a simulation. After a failed
// search, kube-scheduler repeats the search without pods of lower priority, to find pods to evict. Plugins can't distinguish this
// search from others. It begins at once, whereas kube-scheduler delays the next attempt by at least a second.
const simulationGap = 500 * time.Millisecond

// unavailable sets the condition of a group to False, with the reason why the search failed.
func (pl *NodeSets) unavailable(s *groupSearch, reason, message string) {
	if pl.conditions.isSoonAfter(s.group, wellknown.ConditionNodeSetAvailable, metav1.ConditionFalse, s.begin, simulationGap) {
		return
	}
	pl.conditions.report(s.group, metav1.Condition{Type: wellknown.ConditionNodeSetAvailable, Status: metav1.ConditionFalse, Reason: reason, Message: message})
}

// noneFits sets the condition of a group to False, because the pods did not fit on the last set and there is no other one.
func (pl *NodeSets) noneFits(s *groupSearch, failed *assignedPod) {
	text := fmt.Sprintf("the pods of the group do not fit together on the sets of nodes that satisfy constraint %s/%s", v1alpha1.AttributeDomain, s.Constraint.Name)
	if at := slices.IndexFunc(s.pods, func(pod *v1.Pod) bool { return failed != nil && pod.UID == failed.uid }); at >= 0 {
		text += fmt.Sprintf(": pod %s does not fit on node %s of the last set beside the other pods", s.pods[at].Name, failed.name)
	}
	pl.unavailable(s, wellknown.ReasonNoNodeSet, text)
}

// available sets the condition of a group to True if unavailable has set it to False. Otherwise it writes nothing. The pods of a set
// are reserved for binding only if all of them fit, so the condition does not change for sets that were only tried.
func (pl *NodeSets) available(group *schedulingapi.PodGroup) {
	if pl.conditions.isFalse(group, wellknown.ConditionNodeSetAvailable) {
		pl.conditions.report(group, metav1.Condition{
			Type: wellknown.ConditionNodeSetAvailable, Status: metav1.ConditionTrue, Reason: wellknown.ReasonNodeSetFound, Message: "The scheduler found nodes for the pods that waited",
		})
	}
}
