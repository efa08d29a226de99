// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/celset/celset/placement"
)

const setLabel = clusterv1beta2.ClusterSetLabel

// hubWithSets has clusters in sets of all kinds; only "b" is not bound to "ns".
func hubWithSets() *hub {
	h := newHub(managed("c1", setLabel+"=a"), managed("c2", setLabel+"=b"), managed("c3", setLabel+"=a", "env=prod"), managed("c4"), managed("c5", "env=prod"))
	h.sets = []*clusterv1beta2.ManagedClusterSet{
		exclusiveSet("b"), exclusiveSet("a"), labelSet("prod", &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}),
		labelSet("none", nil), labelSet("global", &metav1.LabelSelector{}), exclusiveSet("empty"), {ObjectMeta: metav1.ObjectMeta{Name: "a-default"}},
	}
	h.bindings = nil
	for _, set := range []string{"prod", "a", "none", "empty", "gone"} {
		h.bindings = append(h.bindings, binding("ns", set))
	}
	h.bindings = append(h.bindings, binding("elsewhere", "b"))
	return h
}

func TestAvailable(t *testing.T) {
	for name, test := range map[string]struct {
		spec     string
		change   func(*hub)
		clusters []string
		eligible []string
	}{
		"every bound set": {clusters: []string{"c1", "c3", "c5"}, eligible: []string{"a", "empty", "none", "prod"}},
		"exclusive set":   {spec: `clusterSets: [a]`, clusters: []string{"c1", "c3"}, eligible: []string{"a"}},
		"label selector":  {spec: `clusterSets: [prod]`, clusters: []string{"c3", "c5"}, eligible: []string{"prod"}},
		"union of sets, no cluster twice": {
			spec: `clusterSets: [prod, a]`, clusters: []string{"c1", "c3", "c5"}, eligible: []string{"a", "prod"},
		},
		"only the intersection with bound sets": {spec: `clusterSets: [b, a]`, clusters: []string{"c1", "c3"}, eligible: []string{"a"}},
		"nil label selector has no clusters":    {spec: `clusterSets: [none]`, eligible: []string{"none"}},
		"empty label selector has all": {
			spec: `clusterSets: [global]`, change: func(h *hub) { h.bindings = append(h.bindings, binding("ns", "global")) },
			clusters: []string{"c1", "c2", "c3", "c4", "c5"}, eligible: []string{"global"},
		},
		"no selector type is exclusive": {
			spec: `clusterSets: [a-default]`, eligible: []string{"a-default"},
			change: func(h *hub) {
				h.bindings = append(h.bindings, binding("ns", "a-default"))
				h.clusters[3].Labels[setLabel] = "a-default"
			},
			clusters: []string{"c4"},
		},
		"clusters being deleted are not available": {
			spec: `clusterSets: [a]`, eligible: []string{"a"}, clusters: []string{"c3"},
			change: func(h *hub) { h.clusters[0].DeletionTimestamp = &metav1.Time{Time: now} },
		},
		"a binding counts by its name": {
			spec: `clusterSets: [a]`, eligible: []string{"a"}, clusters: []string{"c1", "c3"},
			change: func(h *hub) { h.bindings[1].Spec.ClusterSet = "b" },
		},
		"objects in any order, twice or nil": {
			spec: `clusterSets: [a]`, eligible: []string{"a"}, clusters: []string{"c1", "c3"},
			change: func(h *hub) {
				h.clusters = []*clusterv1.ManagedCluster{nil, h.clusters[2], h.clusters[0], h.clusters[2], nil}
				h.sets = append(h.sets, nil, h.sets[1])
				h.bindings = append(h.bindings, nil, h.bindings[1])
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := hubWithSets()
			if test.change != nil {
				test.change(h)
			}
			available, err := placement.Available(placed(t, test.spec), h.snapshot())
			require.NoError(t, err)
			var names []string
			for _, c := range available.Clusters {
				names = append(names, c.Name)
			}
			require.Equal(t, test.clusters, names)
			require.Equal(t, test.eligible, available.Eligible)
		})
	}
}

func TestSetsThatCanNotBeUnderstood(t *testing.T) {
	for name, test := range map[string]struct {
		set     *clusterv1beta2.ManagedClusterSet
		message string
	}{
		"selector type": {
			&clusterv1beta2.ManagedClusterSet{Spec: clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: clusterv1beta2.ManagedClusterSelector{SelectorType: "Magic"}}},
			`ManagedClusterSet x: spec.clusterSelector.selectorType: Unsupported value: "Magic"`,
		},
		"label selector": {
			labelSet("x", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Gt"}}}),
			`ManagedClusterSet x: spec.clusterSelector.labelSelector: "Gt" is not a valid label selector operator; mend the selector`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(several("c1")...)
			h.decided("ns", "p", "c1")
			test.set.Name = "x"
			h.sets, h.bindings = append(h.sets, test.set), append(h.bindings, binding("ns", "x"))
			result := schedule(t, placed(t, ``), h)
			require.Nil(t, result.Decision)
			requireSatisfied(t, result, metav1.ConditionFalse, placement.ReasonNotScheduled, test.message)
			requireSatisfied(t, result, metav1.ConditionFalse, placement.ReasonNotScheduled, "the former decision stands")

			result = schedule(t, placed(t, `clusterSets: [global]`), h)
			require.Equal(t, []string{"c1"}, selected(t, result), "other sets do not matter")
		})
	}
}

// What was found about the sets of clusters is used as long as neither has changed.
func TestSetsOfClustersAreRemembered(t *testing.T) {
	h, s := newHub(managed("a", setLabel+"=x"), managed("b", setLabel+"=y"), managed("c", setLabel+"=x")), newScheduler(t)
	set := func(name, version string) *clusterv1beta2.ManagedClusterSet {
		result := exclusiveSet(name)
		result.UID, result.ResourceVersion = types.UID(name), version
		return result
	}
	h.sets = []*clusterv1beta2.ManagedClusterSet{set("x", "1"), set("y", "1")}
	h.bindings = []*clusterv1beta2.ManagedClusterSetBinding{binding("ns", "x")}
	object := placed(t, ``)
	requireSelected := func(why string, want ...string) {
		t.Helper()
		result, err := s.Schedule(t.Context(), object, h.snapshot(), now)
		require.NoError(t, err)
		require.Equal(t, want, selected(t, result), why)
	}
	replace := func(i int, change func(*clusterv1.ManagedCluster)) {
		h.clusters[i] = h.clusters[i].DeepCopy()
		change(h.clusters[i])
	}
	requireSelected("at first", "a", "c")
	requireSelected("nothing has changed", "a", "c")
	replace(1, func(c *clusterv1.ManagedCluster) { c.Labels[setLabel], c.ResourceVersion = "x", "2" })
	requireSelected("a cluster joins", "a", "b", "c")
	replace(0, func(c *clusterv1.ManagedCluster) {
		c.DeletionTimestamp, c.ResourceVersion = &metav1.Time{Time: now}, "2"
	})
	requireSelected("one is being deleted", "b", "c")
	h.clusters = h.clusters[1:]
	requireSelected("it is gone", "b", "c")
	h.clusters = append(h.clusters, managed("a", setLabel+"=x"), nil)
	requireSelected("it is back, and they are not sorted", "a", "b", "c")
	h.clusters = []*clusterv1.ManagedCluster{managed("a", setLabel+"=y"), managed("b", setLabel+"=x"), managed("d", setLabel+"=x")}
	requireSelected("another one has its place", "b", "d")
	h.sets[0] = labelSet("x", &metav1.LabelSelector{MatchLabels: map[string]string{setLabel: "y"}})
	h.sets[0].UID, h.sets[0].ResourceVersion = "x", "2"
	requireSelected("the set has others", "a")
	h.bindings = append(h.bindings, binding("ns", "y"))
	requireSelected("another set is bound", "a")
	h.sets[1] = labelSet("y", &metav1.LabelSelector{})
	requireSelected("a set without version", "a", "b", "d")
	h.sets[1].Spec.ClusterSelector.LabelSelector.MatchLabels = map[string]string{setLabel: "y"}
	requireSelected("is looked at each time", "a")
	h.clusters[1].ResourceVersion = ""
	h.clusters[1] = h.clusters[1].DeepCopy()
	requireSelected("a cluster without version", "a")
	h.clusters[1].Labels[setLabel] = "y"
	requireSelected("is looked at each time", "a", "b")
}
