// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

// Availability has the clusters that a Placement may choose from.
type Availability struct {
	// Bound are the names of the ManagedClusterSets that exist and are bound to the
	// namespace of the Placement, sorted.
	Bound []string
	// Eligible are the names in Bound that the Placement names too, sorted. If it names no set, all are eligible.
	Eligible []string
	// Clusters are the ManagedClusters of the eligible sets that are not being
	// deleted, sorted by name.
	Clusters []*clusterv1.ManagedCluster
	// sets has for each of Clusters the index of the first set in Eligible that the cluster is in.
	sets []int32
	// Transient is set if a cluster has no version, so that its object may be changed without being replaced.
	Transient bool
}

// ClusterSet returns the first eligible set that the cluster at an index is in.
func (a *Availability) ClusterSet(i int) string { return a.Eligible[a.sets[i]] }

// SameSets reports whether two availabilities have the same eligible sets, and the clusters at each index are in the
// same set.
func (a *Availability) SameSets(other *Availability) bool {
	return slices.Equal(a.Eligible, other.Eligible) && slices.Equal(a.sets, other.sets)
}

// Available returns the clusters that a Placement may choose from. The error means that an eligible ManagedClusterSet is
// invalid.
func (m *Memberships) Available(placement *clusterv1beta1.Placement, snapshot *Snapshot) (*Availability, error) {
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
		result.Clusters, result.sets, result.Transient = found.clusters, found.sets, found.transient
	}
	return result, err
}

// boundSets returns the sets that are bound to a namespace. Only the name of a binding is read: if spec.clusterSet
// differs from it, the binding is invalid.
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

// mostMemberships is the number of combinations of sets that are remembered. Each takes 16 bytes a cluster.
const mostMemberships = 16

// Memberships remembers in which sets the clusters of the last snapshot are. All Placements that choose from the same sets
// share a membership. If a cluster changes, only the sets of that cluster are found again.
type Memberships struct {
	mutex sync.Mutex
	// clusters are the clusters of the snapshot. sorted has them sorted by name, each name once. It is the same list if
	// that is sorted.
	clusters, sorted []*clusterv1.ManagedCluster
	// known has a membership for each combination of sets, by keyOf.
	known map[string]*membership
}

// membership has the clusters that are in one of several sets and are not being deleted, sorted by name. For each cluster
// it has the index of the first set that the cluster is in. It is not modified.
type membership struct {
	clusters []*clusterv1.ManagedCluster
	sets     []int32
	// all has the index of the first set for each cluster of the snapshot. For a cluster in no set it is the number of sets.
	all       []int32
	selectors setSelectors
	// transient is set if a cluster of the snapshot has no version, so that it may be changed without being replaced.
	transient bool
}

// of returns the membership of the clusters of a snapshot in some sets.
func (m *Memberships) of(clusters []*clusterv1.ManagedCluster, sets []*clusterv1beta2.ManagedClusterSet) (*membership, error) {
	key, transient := keyOf(sets)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.follow(clusters)
	if known := m.known[key]; known != nil && !transient {
		return known, nil
	}
	selectors, err := selectorsOf(sets)
	if err != nil {
		return nil, err
	}
	found := &membership{selectors: selectors, all: make([]int32, len(m.sorted))}
	for i := range m.sorted {
		found.find(m.sorted, i)
	}
	found.choose(m.sorted)
	if !found.transient && !transient {
		if m.known == nil || len(m.known) >= mostMemberships {
			m.known = map[string]*membership{}
		}
		m.known[key] = found
	}
	return found, nil
}

// follow replaces the clusters by those of another snapshot. If both have the same names, only the sets of clusters that
// have changed are found again.
func (m *Memberships) follow(clusters []*clusterv1.ManagedCluster) {
	if slices.Equal(m.clusters, clusters) {
		return
	}
	changed, same := changedIn(m.clusters, clusters)
	inOrder := len(m.sorted) > 0 && &m.sorted[0] == &m.clusters[0] && len(m.sorted) == len(m.clusters)
	m.clusters = slices.Clone(clusters)
	if !same || !inOrder {
		m.sorted, m.known = byName(m.clusters), nil
		return
	}
	m.sorted = m.clusters
	known := map[string]*membership{}
	for key, former := range m.known {
		next := &membership{selectors: former.selectors, all: slices.Clone(former.all)}
		for _, i := range changed {
			next.find(m.sorted, i)
		}
		if next.choose(m.sorted); !next.transient {
			known[key] = next
		}
	}
	m.known = known
}

// changedIn returns the indices of the clusters that are other objects than before. same reports whether both lists have
// the same names.
func changedIn(before, now []*clusterv1.ManagedCluster) (changed []int, same bool) {
	if len(before) != len(now) {
		return nil, false
	}
	for i, c := range now {
		if c == before[i] {
			continue
		}
		if c == nil || before[i] == nil || c.Name != before[i].Name {
			return nil, false
		}
		changed = append(changed, i)
	}
	return changed, true
}

// keyOf returns a key of sets and their versions. transient is set if a set has no version.
func keyOf(sets []*clusterv1beta2.ManagedClusterSet) (key string, transient bool) {
	var text strings.Builder
	for _, set := range sets {
		fmt.Fprintf(&text, "%s/%s/%s ", set.Name, set.UID, set.ResourceVersion)
		transient = transient || set.ResourceVersion == ""
	}
	return text.String(), transient
}

// find finds the set of one of the clusters of a snapshot.
func (m *membership) find(clusters []*clusterv1.ManagedCluster, i int) {
	c := clusters[i]
	if m.all[i] = int32(m.selectors.count); c.DeletionTimestamp.IsZero() {
		m.all[i] = int32(m.selectors.find(c))
	}
	m.transient = m.transient || c.ResourceVersion == ""
}

// choose lists the clusters of a snapshot that are in a set.
func (m *membership) choose(clusters []*clusterv1.ManagedCluster) {
	n := 0
	for _, set := range m.all {
		if int(set) < m.selectors.count {
			n++
		}
	}
	m.clusters, m.sets = make([]*clusterv1.ManagedCluster, 0, n), make([]int32, 0, n)
	for i, set := range m.all {
		if int(set) < m.selectors.count {
			m.clusters, m.sets = append(m.clusters, clusters[i]), append(m.sets, set)
		}
	}
}

// setSelectors find the first of several sets that a cluster is in.
type setSelectors struct {
	count int
	// exclusive has the indices of the sets that clusters join by their label.
	exclusive map[string]int
	selectors []indexed
}

type indexed struct {
	index    int
	selector labels.Selector
}

func selectorsOf(sets []*clusterv1beta2.ManagedClusterSet) (setSelectors, error) {
	result := setSelectors{count: len(sets), exclusive: map[string]int{}}
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
func (m setSelectors) find(cluster *clusterv1.ManagedCluster) int {
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
