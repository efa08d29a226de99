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

// Decision is what the PlacementDecisions of a Placement are to say.
type Decision struct {
	// Groups are at least one, in order of their indices from 0.
	Groups []Group
	// Clusters is how many clusters they have.
	Clusters int
	// ScoresUpdated tells that some score differs from what the PlacementDecisions
	// say now.
	ScoresUpdated bool
}

// Group is a decision group.
type Group struct {
	// Name is what the Placement calls it, "" for the clusters in none of its groups.
	// Several may have the same name.
	Name string
	// Slices are at least one, in order of the numbers in their names, which may have
	// gaps. Only that of an empty group is empty.
	Slices []Slice
}

// Slice is what one PlacementDecision says.
type Slice struct {
	// Name is that of the PlacementDecision.
	Name string
	// Decisions are at most [MaxSliceLength], in the order of spec.sortBy. In order of
	// scores the next slice of the group continues where this one ends; names are in
	// order in each slice only.
	Decisions []clusterv1beta1.ClusterDecision
}

// Objects are the PlacementDecisions that a Placement is to have, and no others.
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

// Status lists the groups as the status of a Placement does.
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
