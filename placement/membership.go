// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

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
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

// Which set a cluster is in is the same question for all Placements that may choose from the same sets. It is
// answered once for each snapshot, and forgotten when a cluster has changed: to ask again takes less than a
// Placement does.

// mostMemberships is of how many combinations of sets that is remembered. Each takes 16 bytes a cluster.
const mostMemberships = 16

// memberships are those of the clusters of one snapshot, by the sets.
type memberships struct {
	mutex    sync.Mutex
	clusters []*clusterv1.ManagedCluster
	known    map[string]*membership
}

// membership has the clusters that are in any of several sets and not being deleted, sorted by name, and for each
// the index of the first set that it is in. It is not modified.
type membership struct {
	clusters []*clusterv1.ManagedCluster
	sets     []int
	// fleeting is set if a cluster of the snapshot has no version, so that it may be changed without being replaced.
	fleeting bool
}

// of returns the membership of the clusters of a snapshot in some sets.
func (m *memberships) of(clusters []*clusterv1.ManagedCluster, sets []*clusterv1beta2.ManagedClusterSet) (*membership, error) {
	selectors, err := selectorsOf(sets)
	if err != nil {
		return nil, err
	}
	key, fleeting := keyOf(sets)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !slices.Equal(m.clusters, clusters) {
		m.clusters, m.known = slices.Clone(clusters), nil
	}
	if known := m.known[key]; known != nil && !fleeting {
		return known, nil
	}
	found := selectors.membership(byName(m.clusters))
	if !found.fleeting && !fleeting {
		if m.known == nil || len(m.known) >= mostMemberships {
			m.known = map[string]*membership{}
		}
		m.known[key] = found
	}
	return found, nil
}

// keyOf names sets and their versions. fleeting is set if one has none.
func keyOf(sets []*clusterv1beta2.ManagedClusterSet) (key string, fleeting bool) {
	var text strings.Builder
	for _, set := range sets {
		fmt.Fprintf(&text, "%s/%s/%s ", set.Name, set.UID, set.ResourceVersion)
		fleeting = fleeting || set.ResourceVersion == ""
	}
	return text.String(), fleeting
}

// membership looks at all clusters.
func (m setSelectors) membership(clusters []*clusterv1.ManagedCluster) *membership {
	result := &membership{}
	for _, c := range clusters {
		result.fleeting = result.fleeting || c.ResourceVersion == ""
		if !c.DeletionTimestamp.IsZero() {
			continue
		}
		if set := m.find(c); set < m.count {
			result.clusters, result.sets = append(result.clusters, c), append(result.sets, set)
		}
	}
	result.clusters, result.sets = slices.Clip(result.clusters), slices.Clip(result.sets)
	return result
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
