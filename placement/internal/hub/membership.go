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

// Availability holds the clusters that a Placement may select.
type Availability struct {
	// Bound lists the sorted names of the ManagedClusterSets that exist and are bound to the namespace of the Placement.
	Bound []string
	// Eligible lists the sorted names of the sets that the Placement selects from: the sets in Bound that the Placement names, or
	// all of Bound if it names none.
	Eligible []string
	// Clusters lists the ManagedClusters of the eligible sets that are not being deleted, sorted by name.
	Clusters []*clusterv1.ManagedCluster
	// sets[i] is the index in Eligible of the first set that contains Clusters[i].
	sets []int32
	// Transient is set if a cluster has no resource version. Such an object may be changed in place, so nothing is remembered.
	Transient bool
}

// ClusterSet returns the first eligible set that contains Clusters[i].
func (a *Availability) ClusterSet(i int) string { return a.Eligible[a.sets[i]] }

// SameSets reports whether both have the same eligible sets, and the clusters at each index have the same first set.
func (a *Availability) SameSets(other *Availability) bool {
	return slices.Equal(a.Eligible, other.Eligible) && slices.Equal(a.sets, other.sets)
}

// Available returns the clusters that a Placement may select. It fails if an eligible ManagedClusterSet is invalid.
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

// boundSets returns the sets that are bound to a namespace. It reads only the names of bindings, because a binding whose
// spec.clusterSet differs from its name is invalid.
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

// mostMemberships is the maximum number of remembered combinations of sets. Each combination takes 16 bytes for each cluster.
const mostMemberships = 16

// Memberships remembers the clusters of the last snapshot in each combination of sets. Placements that select from the same
// sets share one membership. After a change of a cluster, only the sets of that cluster are computed again.
type Memberships struct {
	mutex sync.Mutex
	// clusters holds the clusters of the last snapshot. sorted holds them sorted by name, without duplicates. If clusters is
	// sorted already, both are the same slice.
	clusters, sorted []*clusterv1.ManagedCluster
	// bySets maps the key of a combination of sets (keyOf) to the membership in these sets.
	bySets map[string]*membership
}

// membership lists the clusters that are in at least one of several sets and are not being deleted, sorted by name. sets[i] is
// the index of the first set that contains clusters[i]. A membership is immutable.
type membership struct {
	clusters []*clusterv1.ManagedCluster
	sets     []int32
	// all holds, for each cluster of the snapshot, the index of the first set that contains it. If no set contains it, the value
	// is the number of sets.
	all       []int32
	selectors setSelectors
	// transient is set if a cluster of the snapshot has no resource version. Such an object may be changed in place.
	transient bool
}

// of returns the membership of a snapshot's clusters in a combination of sets.
func (m *Memberships) of(clusters []*clusterv1.ManagedCluster, sets []*clusterv1beta2.ManagedClusterSet) (*membership, error) {
	key, transient := keyOf(sets)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.follow(clusters)
	if known := m.bySets[key]; known != nil && !transient {
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
		if m.bySets == nil || len(m.bySets) >= mostMemberships {
			m.bySets = map[string]*membership{}
		}
		m.bySets[key] = found
	}
	return found, nil
}

// follow replaces the clusters by the clusters of a new snapshot. If both have the same names, follow updates the memberships
// for the changed clusters. Otherwise it drops all memberships.
func (m *Memberships) follow(clusters []*clusterv1.ManagedCluster) {
	if slices.Equal(m.clusters, clusters) {
		return
	}
	changed, same := changedIn(m.clusters, clusters)
	inOrder := len(m.sorted) > 0 && &m.sorted[0] == &m.clusters[0] && len(m.sorted) == len(m.clusters)
	m.clusters = slices.Clone(clusters)
	if !same || !inOrder {
		m.sorted, m.bySets = byName(m.clusters), nil
		return
	}
	m.sorted = m.clusters
	known := map[string]*membership{}
	for key, former := range m.bySets {
		next := &membership{selectors: former.selectors, all: slices.Clone(former.all)}
		for _, i := range changed {
			next.find(m.sorted, i)
		}
		if next.choose(m.sorted); !next.transient {
			known[key] = next
		}
	}
	m.bySets = known
}

// changedIn returns the indices of the clusters whose objects were replaced. same reports whether both lists have the same
// names in the same order.
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

// keyOf returns a key made of the names and versions of the sets. transient is set if a set has no version.
func keyOf(sets []*clusterv1beta2.ManagedClusterSet) (key string, transient bool) {
	var text strings.Builder
	for _, set := range sets {
		fmt.Fprintf(&text, "%s/%s/%s ", set.Name, set.UID, set.ResourceVersion)
		transient = transient || set.ResourceVersion == ""
	}
	return text.String(), transient
}

// find sets all[i], the index of the first set that contains cluster i.
func (m *membership) find(clusters []*clusterv1.ManagedCluster, i int) {
	c := clusters[i]
	if m.all[i] = int32(m.selectors.count); c.DeletionTimestamp.IsZero() {
		m.all[i] = int32(m.selectors.find(c))
	}
	m.transient = m.transient || c.ResourceVersion == ""
}

// choose sets clusters and sets: the snapshot's clusters that are in at least one set.
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

// setSelectors finds, for a cluster, the first of several sets that contains it.
type setSelectors struct {
	count int
	// exclusive maps the name of a set to its index, for sets that a cluster joins by a label with the name of the set.
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
				return result, fmt.Errorf("ManagedClusterSet %s: %s: %w; correct the selector", set.Name, path.Child("labelSelector"), err)
			}
			result.selectors = append(result.selectors, indexed{i, selector})
		default:
			return result, fmt.Errorf("ManagedClusterSet %s: %w", set.Name, field.NotSupported(path.Child("selectorType"), from.SelectorType,
				[]clusterv1beta2.SelectorType{clusterv1beta2.ExclusiveClusterSetLabel, clusterv1beta2.LabelSelector}))
		}
	}
	return result, nil
}

// find returns the index of the first set that contains the cluster. If no set contains it, find returns the number of sets.
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

// byName returns the clusters sorted by name. It leaves out nil and all but one of several clusters with the same name.
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
