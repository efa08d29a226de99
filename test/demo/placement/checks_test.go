// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

var members = newFleet(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))

// outcomeWith is that of a Placement which is decided and has these clusters.
func outcomeWith(selected []member) *outcome {
	o := &outcome{placement: &clusterv1beta1.Placement{}, names: namesOf(selected)}
	slices.Sort(o.names)
	o.placement.Generation = 2
	o.placement.Status.NumberOfSelectedClusters = int32(len(selected))
	o.placement.Status.Conditions = []metav1.Condition{{
		Type: clusterv1beta1.PlacementConditionSatisfied, Status: "True", ObservedGeneration: 2, Message: "All of it",
	}}
	return o
}

func TestFleetIsTheSameEachTimeAndVaries(t *testing.T) {
	require.Len(t, members, fleetSize)
	require.Equal(t, members, newFleet(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)))
	from := available(members)
	require.Less(t, len(from), fleetSize)
	require.Len(t, choose(from, func(m member) bool { return m.Labels[shopLabel] != "" }), 2)
	values := map[string]map[string]bool{cloudLabel: {}, regionLabel: {}}
	for _, m := range from {
		for label := range values {
			values[label][m.Labels[label]] = true
		}
	}
	require.Len(t, values[cloudLabel], 3)
	require.Len(t, values[regionLabel], len(regions))
	for _, e := range examples {
		require.NotEmpty(t, choose(from, e.matches), e.name)
		require.NotEmpty(t, choose(from, func(m member) bool { return !e.matches(m) }), e.name)
	}
}

func TestDecided(t *testing.T) {
	o := outcomeWith(members[:2])
	require.NoError(t, decided(o))
	o.placement.Generation = 3
	require.ErrorContains(t, decided(o), "nobody has decided it")
	o = outcomeWith(members[:2])
	o.names = o.names[:1]
	require.ErrorContains(t, decided(o), "the status says that 2 clusters are selected, the PlacementDecisions have 1")
}

func TestSelects(t *testing.T) {
	backwards := slices.Clone(members[:3])
	slices.Reverse(backwards)
	require.NoError(t, selects(backwards)(outcomeWith(members[:3])))
	for name, got := range map[string][]member{"one less": members[:2], "one more": members[:4], "another": members[1:4]} {
		require.ErrorContains(t, selects(backwards)(outcomeWith(got)), "should be selected", name)
	}
	twice := outcomeWith(append(slices.Clone(members[:3]), members[0]))
	require.Error(t, selects(members[:3])(twice))
}

func TestSays(t *testing.T) {
	kind, o := clusterv1beta1.PlacementConditionSatisfied, outcomeWith(nil)
	require.NoError(t, says(kind, "True", "All")(o))
	require.Error(t, says(kind, "False", "All")(o))
	require.Error(t, says(kind, "True", "Some")(o))
	require.Error(t, says("Other", "True", "All")(o))
}

func TestSpread(t *testing.T) {
	from := available(members)
	var even []member
	for _, region := range regions {
		in := choose(from, func(m member) bool { return m.Labels[regionLabel] == region.name })
		even = append(even, best(in, 2, 1, defaultScores, ratioScore)...)
	}
	require.NoError(t, spread(from, 10)(outcomeWith(even)))
	require.ErrorContains(t, spread(from, 9)(outcomeWith(even)), "10 clusters are selected, not 9")
	uneven := best(from, 10, 1, defaultScores, ratioScore)
	require.ErrorContains(t, spread(from, 10)(outcomeWith(uneven)), "differ by more than 1")
	in := choose(from, func(m member) bool { return m.Labels[regionLabel] == regions[0].name })
	worse := append(best(in, 2, -1, defaultScores, ratioScore), even[2:]...)
	require.ErrorContains(t, spread(from, 10)(outcomeWith(worse)), "the best clusters in region ap-south are")
	require.Error(t, within(countByRegion(nil, nil), 1), "no regions at all")
}

func TestInReach(t *testing.T) {
	labels := map[string]map[string]string{}
	var inside, outside, shop string
	for _, m := range members {
		labels[m.Name] = m.Labels
		switch {
		case m.Labels[shopLabel] != "":
			shop = m.Name
		case len(available([]member{m})) == 1:
			inside = m.Name
		default:
			outside = m.Name
		}
	}
	in := func(namespace string, names ...string) error {
		object := clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
		for _, name := range names {
			object.Status.Decisions = append(object.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: name})
		}
		return inReach(object, labels, map[string]bool{})
	}
	require.NoError(t, in(namespace, inside, shop))
	require.NoError(t, in("shop", shop))
	require.ErrorContains(t, in(namespace, inside, outside), "is in no set that is bound")
	require.ErrorContains(t, in("shop", inside), "is in no set that is bound")
	require.ErrorContains(t, in(namespace, "unknown"), "is in no set that is bound")
	require.ErrorContains(t, in(namespace, inside, inside), "is selected twice")
	require.ErrorContains(t, in(namespace, make([]string, 101)...), "it has 101 clusters")
}

func TestFacts(t *testing.T) {
	require.True(t, isMinor("1.30.4", "30", "31"))
	for _, text := range []string{"", "1.32.0", "v1.30.0", "1.30", "1.30.x", "2.30.0"} {
		require.False(t, isMinor(text, "30", "31"), text)
	}
	require.True(t, isNewerThan("v1.30.1", "v1.30.0"))
	require.True(t, isNewerThan("v1.100.0", "v1.99.0"))
	require.False(t, isNewerThan("v1.30.0", "v1.30.0"))

	tainted := member{ManagedCluster: members[0].DeepCopy()}
	tainted.Spec.Taints = []clusterv1.Taint{{Key: "a", Effect: clusterv1.TaintEffectNoSelect}}
	require.Equal(t, []string{members[1].Name}, namesOf(untainted([]member{tainted, members[1]})))
	require.Equal(t, "", claimOf(tainted, "none"))
	require.False(t, hasMore(tainted, cpuScore, "0"), "it has no scores")
	require.Zero(t, valueOf(tainted, defaultScores, ratioScore))
}

// Every client of controller-runtime logs, and prints a stack trace if nobody has set a logger.
func TestLoggerIsSetBeforeTheClient(t *testing.T) {
	var logged bytes.Buffer
	_, err := newDemo(Options{Config: &rest.Config{Host: "https://localhost:1"}, Controller: &rest.Config{}, Log: &logged})
	require.NoError(t, err)
	log.Log.Info("heard")
	require.Contains(t, logged.String(), "heard")
}

func TestTablesAreBounded(t *testing.T) {
	for _, n := range []int{0, maxRows, maxRows + 1, fleetSize} {
		var out bytes.Buffer
		(&demo{Options: Options{Out: &out}}).draw(members[:n], cloudOf, taintsOf)
		lines := strings.Count(out.String(), "\n")
		if n <= maxRows {
			require.Equal(t, n+1, lines)
			continue
		}
		require.Equal(t, maxRows+2, lines)
		require.Contains(t, out.String(), fmt.Sprintf("... and %d more", n-maxRows))
	}
}
