// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// Decision is the wanted content of a Placement's PlacementDecisions.
type Decision struct {
	// Groups holds the decision groups in the order of their indices, which start at 0. There is at least one group.
	Groups []Group
	// Clusters is the number of clusters in all groups.
	Clusters int
	// ScoresUpdated is set if the decision has a score that differs from the former decision.
	ScoresUpdated bool
}

// Group is a decision group.
type Group struct {
	// Name is the name of the group in the Placement. It is "" for clusters that belong to no named group. Several groups may have
	// the same name.
	Name string
	// Slices holds at least one slice, in the order of the numbers in their names. Numbers may be missing. A slice is empty only
	// if the whole group is empty.
	Slices []Slice
}

// Slice is the content of one PlacementDecision.
type Slice struct {
	// Name is the name of the PlacementDecision.
	Name string
	// Decisions holds at most [MaxSliceLength] entries in the order of spec.sortBy. An order by score continues from one slice of
	// a group to the next. An order by name holds only within each slice.
	Decisions []clusterv1beta1.ClusterDecision
}

// Objects returns all PlacementDecisions that the Placement must have.
func (d *Decision) Objects(placement *clusterv1beta1.Placement) []*clusterv1beta1.PlacementDecision {
	var result []*clusterv1beta1.PlacementDecision
	owner := metav1.NewControllerRef(placement, schema.GroupVersion(clusterv1beta1.GroupVersion).WithKind("Placement"))
	for i, group := range d.Groups {
		for _, slice := range group.Slices {
			result = append(result, &clusterv1beta1.PlacementDecision{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: placement.Namespace,
					Name:      slice.Name,
					Labels: map[string]string{
						clusterv1beta1.PlacementLabel:          placement.Name,
						clusterv1beta1.DecisionGroupIndexLabel: strconv.Itoa(i),
						clusterv1beta1.DecisionGroupNameLabel:  group.Name,
					},
					OwnerReferences: []metav1.OwnerReference{*owner},
				},
				Status: clusterv1beta1.PlacementDecisionStatus{Decisions: slices.Clone(slice.Decisions)},
			})
		}
	}
	return result
}

// Status returns the groups as they are written in the status of a Placement.
func (d *Decision) Status() []clusterv1beta1.DecisionGroupStatus {
	result := make([]clusterv1beta1.DecisionGroupStatus, len(d.Groups))
	for i, group := range d.Groups {
		result[i] = clusterv1beta1.DecisionGroupStatus{DecisionGroupIndex: int32(i), DecisionGroupName: group.Name, Decisions: []string{}}
		for _, slice := range group.Slices {
			result[i].Decisions = append(result[i].Decisions, slice.Name)
			result[i].ClustersCount += int32(len(slice.Decisions))
		}
	}
	return result
}
