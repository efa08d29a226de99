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

// Snapshot is the hub at one moment: all that a decision is made from, besides
// the Placement and the time. Nothing in it may be modified, also later: after a change of
// an object with UID and version there must be another object with another version. Objects
// that are nil are ignored, and so are all but one of several objects with the same name.
type Snapshot struct {
	// Clusters are all ManagedClusters. In order of their names they need no sorting.
	Clusters []*clusterv1.ManagedCluster
	// ClusterSets are all ManagedClusterSets.
	ClusterSets []*clusterv1beta2.ManagedClusterSet
	// Bindings are the ManagedClusterSetBindings, at least those of the namespace of
	// the Placement.
	Bindings []*clusterv1beta2.ManagedClusterSetBinding
	// Scores finds AddOnPlacementScores; nil finds none. An error means that the
	// snapshot can't be read, not that there is no such object. Finders that are equal must find the same
	// objects in all snapshots.
	Scores cluster.ScoreFinder
	// Decisions are the PlacementDecisions of all Placements; nil are none.
	Decisions *Decisions
}

// Score returns an AddOnPlacementScore, nil if there is none.
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

// A ScoreNamer is a [cluster.ScoreFinder] that lists the AddOnPlacementScores of a cluster. With it, a condition can
// suggest the name for which a misspelt one is meant.
type ScoreNamer interface {
	// ScoreNames returns the names in a namespace, in any order.
	ScoreNames(namespace string) []string
}

// ScoreNames returns the names of the AddOnPlacementScores of some clusters, nil if they can't be listed.
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

// Version is the version of an object. After a change an object has another version.
type Version struct {
	uid      types.UID
	resource string
}

// VersionOf returns the version of an object.
func VersionOf(object metav1.Object) Version {
	return Version{object.GetUID(), object.GetResourceVersion()}
}

// Rememberable reports whether all objects with this version are equal. Objects that no API server has stored have no version.
func (v Version) Rememberable() bool { return v.resource != "" }
