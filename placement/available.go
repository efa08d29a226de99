// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

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
	sets []int
	// fleeting tells that one of the clusters may be changed without being replaced.
	fleeting bool
	// joint is what else is known of the clusters.
	joint *joint
}

// Available returns what a Placement may choose from. A ManagedClusterSet that
// can't be understood is an error if it is eligible.
func Available(placement *clusterv1beta1.Placement, snapshot *Snapshot) (*Availability, error) {
	return available(placement, snapshot, newJoint)
}

// available asks known for what is known of the clusters of some sets.
func available(placement *clusterv1beta1.Placement, snapshot *Snapshot, known func(eligible []*clusterv1beta2.ManagedClusterSet) *joint) (*Availability, error) {
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
	members, err := membersOf(eligible)
	if err != nil {
		return result, err
	}
	known(eligible).available(result, snapshot.Clusters, eligible, members)
	return result, nil
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

// membership tells in which of several sets a cluster is.
type membership struct {
	count int
	// exclusive has the indices of the sets that clusters join by their label.
	exclusive map[string]int
	selectors []indexed
}

type indexed struct {
	index    int
	selector labels.Selector
}

func membersOf(sets []*clusterv1beta2.ManagedClusterSet) (membership, error) {
	result := membership{count: len(sets), exclusive: map[string]int{}}
	for i, set := range sets {
		path, from := field.NewPath("spec", "clusterSelector"), set.Spec.ClusterSelector
		switch from.SelectorType {
		case "", clusterv1beta2.ExclusiveClusterSetLabel:
			result.exclusive[set.Name] = i
		case clusterv1beta2.LabelSelector:
			selector, err := metav1.LabelSelectorAsSelector(from.LabelSelector)
			if err != nil {
				return result, fmt.Errorf("ManagedClusterSet %s: %s: %w; mend the selector", set.Name, path.Child("labelSelector"), err)
			}
			result.selectors = append(result.selectors, indexed{i, selector})
		default:
			return result, fmt.Errorf("ManagedClusterSet %s: %w", set.Name, field.NotSupported(path.Child("selectorType"), from.SelectorType,
				[]clusterv1beta2.SelectorType{clusterv1beta2.ExclusiveClusterSetLabel, clusterv1beta2.LabelSelector}))
		}
	}
	return result, nil
}

// find returns the first set, their count if there is none.
func (m membership) find(cluster *clusterv1.ManagedCluster) int {
	first := m.count
	if name, labelled := cluster.Labels[clusterv1beta2.ClusterSetLabel]; labelled {
		if i, ok := m.exclusive[name]; ok {
			first = i
		}
	}
	for _, s := range m.selectors {
		if s.index > first {
			break
		}
		if s.selector.Matches(labels.Set(cluster.Labels)) {
			return s.index
		}
	}
	return first
}

// byName returns the clusters sorted by name, each name once.
func byName(clusters []*clusterv1.ManagedCluster) []*clusterv1.ManagedCluster {
	order := func(a, b *clusterv1.ManagedCluster) int { return cmp.Compare(a.Name, b.Name) }
	usable := func() bool {
		for i, c := range clusters {
			if c == nil || i > 0 && clusters[i-1].Name >= c.Name {
				return false
			}
		}
		return true
	}
	if usable() {
		return clusters
	}
	result := slices.DeleteFunc(slices.Clone(clusters), func(c *clusterv1.ManagedCluster) bool { return c == nil })
	slices.SortStableFunc(result, order)
	return slices.CompactFunc(result, func(a, b *clusterv1.ManagedCluster) bool { return a.Name == b.Name })
}
