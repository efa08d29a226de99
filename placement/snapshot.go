// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strings"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/celset/celset/cel/cluster"
)

// Snapshot is the hub at one moment: all that a decision is made from, besides
// the Placement and the time. Nothing in it is modified, nor may it be later: an object
// with UID and version that has changed is another object, with another version. Objects
// that are nil, and all but one of several with the same name, are ignored.
type Snapshot struct {
	// Clusters are all ManagedClusters. In order of their names they need no sorting.
	Clusters []*clusterv1.ManagedCluster
	// ClusterSets are all ManagedClusterSets.
	ClusterSets []*clusterv1beta2.ManagedClusterSet
	// Bindings are the ManagedClusterSetBindings, at least those of the namespace of
	// the Placement.
	Bindings []*clusterv1beta2.ManagedClusterSetBinding
	// Scores finds AddOnPlacementScores; nil finds none. An error is taken for a
	// failure of the snapshot, not for a missing object. For [Scheduler.Unchanged], what is equal finds the
	// same in every snapshot.
	Scores cluster.ScoreFinder
	// Decisions are the PlacementDecisions of all Placements; nil are none.
	Decisions *Decisions
}

func (s *Snapshot) score(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error) {
	if s.Scores == nil {
		return nil, nil
	}
	object, err := s.Scores.FindScore(namespace, name)
	if err != nil {
		return nil, fmt.Errorf("get AddOnPlacementScore %s/%s: %w", namespace, name, err)
	}
	return object, nil
}

// Availability is what a Placement may choose from.
type Availability struct {
	// Bound are the names of the ManagedClusterSets that exist and are bound to the
	// namespace of the Placement, sorted.
	Bound []string
	// Eligible are those of them that the Placement wants, sorted.
	Eligible []string
	// Clusters are the ManagedClusters of the eligible sets that are not being
	// deleted, sorted by name.
	Clusters []*clusterv1.ManagedCluster
	// sets has for each of Clusters the index of the first of Eligible that it is in.
	sets []int32
	// fleeting is set if one of the clusters may be changed without being replaced.
	fleeting bool
}

// available returns what a Placement may choose from. A ManagedClusterSet that can't be understood is an error if it is eligible.
func (m *memberships) available(placement *clusterv1beta1.Placement, snapshot *Snapshot) (*Availability, error) {
	sets := boundSets(placement.Namespace, snapshot)
	result := &Availability{}
	var eligible []*clusterv1beta2.ManagedClusterSet
	for _, set := range sets {
		result.Bound = append(result.Bound, set.Name)
		if len(placement.Spec.ClusterSets) == 0 || slices.Contains(placement.Spec.ClusterSets, set.Name) {
			result.Eligible = append(result.Eligible, set.Name)
			eligible = append(eligible, set)
		}
	}
	found, err := m.of(snapshot.Clusters, eligible)
	if err == nil {
		result.Clusters, result.sets, result.fleeting = found.clusters, found.sets, found.fleeting
	}
	return result, err
}

// boundSets are looked up by the names of the bindings: spec.clusterSet is equal to
// it, or the binding is not valid.
func boundSets(namespace string, snapshot *Snapshot) []*clusterv1beta2.ManagedClusterSet {
	bound := map[string]bool{}
	for _, binding := range snapshot.Bindings {
		if binding != nil && binding.Namespace == namespace {
			bound[binding.Name] = true
		}
	}
	var result []*clusterv1beta2.ManagedClusterSet
	for _, set := range snapshot.ClusterSets {
		if set != nil && bound[set.Name] {
			result = append(result, set)
			delete(bound, set.Name)
		}
	}
	slices.SortFunc(result, func(a, b *clusterv1beta2.ManagedClusterSet) int { return strings.Compare(a.Name, b.Name) })
	return result
}
