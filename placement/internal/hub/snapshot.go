// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/celset/celset/cel/cluster"
)

// Snapshot is the state of the hub at one time. Together with the Placement and the time, it determines a decision. Its objects
// must never be modified. A changed object must be a new object with a new version, if it has a UID and a version. Nil objects
// are ignored. If several objects have the same name, only one of them is used.
type Snapshot struct {
	// Clusters lists all ManagedClusters. If the list is sorted by name, it need not be sorted for each decision.
	Clusters []*clusterv1.ManagedCluster
	// ClusterSets lists all ManagedClusterSets.
	ClusterSets []*clusterv1beta2.ManagedClusterSet
	// Bindings lists at least the ManagedClusterSetBindings in the namespace of the Placement.
	Bindings []*clusterv1beta2.ManagedClusterSetBinding
	// Scores finds AddOnPlacementScores. If Scores is nil, no score exists. A finder must return an error only if the snapshot
	// can't be read, not if the object does not exist. Equal finders must find the same objects in all snapshots.
	Scores cluster.ScoreFinder
	// Decisions holds the PlacementDecisions of all Placements. If it is nil, no PlacementDecision exists.
	Decisions *Decisions
}

// Score returns an AddOnPlacementScore, or nil if it does not exist.
func (s *Snapshot) Score(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error) {
	if s.Scores == nil {
		return nil, nil
	}
	object, err := s.Scores.FindScore(namespace, name)
	if err != nil {
		return nil, fmt.Errorf("get AddOnPlacementScore %s/%s: %w", namespace, name, err)
	}
	return object, nil
}

// ScoreNamer is a [cluster.ScoreFinder] that can also list names. A condition can then suggest the right name for a misspelt
// one.
type ScoreNamer interface {
	// ScoreNames returns the names of the AddOnPlacementScores in a namespace, in any order.
	ScoreNames(namespace string) []string
}

// ScoreNames returns the names of the AddOnPlacementScores of the given clusters. It returns nil if Scores can't list names.
func (s *Snapshot) ScoreNames(clusters iter.Seq[*clusterv1.ManagedCluster]) sets.Set[string] {
	namer, ok := s.Scores.(ScoreNamer)
	if !ok {
		return nil
	}
	result := sets.New[string]()
	for c := range clusters {
		result.Insert(namer.ScoreNames(c.Name)...)
	}
	return result
}

// Version identifies one version of an object: its UID and its resource version.
type Version struct {
	uid      types.UID
	resource string
}

// VersionOf returns the version of an object.
func VersionOf(object metav1.Object) Version {
	return Version{object.GetUID(), object.GetResourceVersion()}
}

// Rememberable reports whether equal versions imply equal objects. It returns false for an object that no API server has
// stored.
func (v Version) Rememberable() bool { return v.resource != "" }
