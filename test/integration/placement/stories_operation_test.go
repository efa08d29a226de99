// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/celset/celset/internal/testing/env"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/controller"
)

// User stories 6 to 10 of the proposal "New Placement APIs".

// Selected clusters are in different regions, at most one in each; and where there
// are more than regions, as evenly as can be.
func TestStory06ClustersAcrossRegions(t *testing.T) {
	s := newFleet(t, "")
	for _, name := range []string{"east-1", "east-2", "east-3", "north-1", "west-1", "west-2"} {
		region, _, _ := strings.Cut(name, "-")
		s.join(t, name, traits{labels: map[string]string{"region": region}, claims: map[string]string{"region.example.com": region}})
	}
	spread := func(n int, of, when string) string {
		return fmt.Sprintf(steady+"numberOfClusters: %d\nspreadPolicy: {spreadConstraints: [{%s, maxSkew: 1, whenUnsatisfiable: %s}]}", n, of, when)
	}
	s.place(t, "by-label", spread(3, "topologyKey: region, topologyKeyType: Label", "DoNotSchedule"))
	s.place(t, "by-claim", spread(3, "topologyKey: region.example.com, topologyKeyType: Claim", "DoNotSchedule"))
	s.place(t, "five", spread(5, "topologyKey: region, topologyKeyType: Label", "ScheduleAnyway"))
	s.place(t, "strictly-six", spread(6, "topologyKey: region, topologyKeyType: Label", "DoNotSchedule"))
	s.requireSelected(t, "by-label", "east-1", "north-1", "west-1")
	s.requireSelected(t, "by-claim", "east-1", "north-1", "west-1")
	s.requireSelected(t, "five", "east-1", "east-2", "north-1", "west-1", "west-2")
	s.requireSelected(t, "strictly-six", "east-1", "east-2", "north-1", "west-1", "west-2")
	s.requireCondition(t, "strictly-six", clusterv1beta1.PlacementConditionSatisfied, "False "+placement.ReasonNotScheduled, "Spread removed 1")

	s.fail(t, "west-1")
	s.requireSelected(t, "by-label", "east-1", "north-1", "west-2")
	s.requireSelected(t, "by-claim", "east-1", "north-1", "west-2")
	require.NoError(t, s.Delete(t.Context(), read(t, s, "", "north-1", &clusterv1.ManagedCluster{})))
	s.requireSelected(t, "by-label", "east-1", "east-2", "west-2") // of the regions that are left
	s.requireSelected(t, "by-claim", "east-1", "east-2", "west-2")
}

// A controller that consumes a Placement watches its PlacementDecisions by their label
// and always knows who was added and who removed, over several objects and groups.
func TestStory07ControllerConsumesPlacement(t *testing.T) {
	s := newFleet(t, "")
	for i := range 6 {
		s.join(t, fmt.Sprintf("c%d", i), traits{labels: map[string]string{"ring": []string{"canary", "all"}[min(i, 1)]}})
	}
	s.place(t, "rollout", `
predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['!has(managedCluster.metadata.labels.off)']}}}]
decisionStrategy:
  groupStrategy:
    clustersPerDecisionGroup: 3
    decisionGroups: [{groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {ring: canary}}}}]
`)
	s.place(t, "noise", `{}`)
	c := s.consume(t, "rollout")
	c.until(t, "0:canary c0", "1: c1", "1: c2", "1: c3", "2: c4", "2: c5")

	change(t, s, read(t, s, "", "c2", &clusterv1.ManagedCluster{}), func(c *clusterv1.ManagedCluster) { c.Labels["off"] = "" })
	c.until(t, "0:canary c0", "1: c1", "1: c3", "1: c4", "2: c5")
	s.join(t, "c6", traits{labels: map[string]string{"ring": "canary"}})
	c.until(t, "0:canary c0", "0:canary c6", "1: c1", "1: c3", "1: c4", "2: c5")
	require.NoError(t, s.Delete(t.Context(), s.live(t, "rollout")))
	c.until(t)
}

// consumer is what a controller knows of a Placement: the clusters by the objects that
// it watches, each as index and name of its group, and its own.
type consumer struct {
	watch.Interface
	seen map[string][]string
}

func (s scene) consume(t *testing.T, name string) *consumer {
	t.Helper()
	w, err := s.Watch(t.Context(), &clusterv1beta1.PlacementDecisionList{}, client.InNamespace(s.namespace),
		client.MatchingLabels{clusterv1beta1.PlacementLabel: name},
		&client.ListOptions{Raw: &metav1.ListOptions{SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return &consumer{w, map[string][]string{}}
}

// until follows the watch until exactly these clusters are selected.
func (c *consumer) until(t *testing.T, want ...string) {
	t.Helper()
	for timeout := time.After(env.Patience); !slices.Equal(want, c.clusters()); {
		select {
		case e := <-c.ResultChan():
			object, ok := e.Object.(*clusterv1beta1.PlacementDecision)
			require.True(t, ok, "%s: %v", e.Type, e.Object)
			if delete(c.seen, object.Name); e.Type == watch.Deleted {
				continue
			}
			group := object.Labels[clusterv1beta1.DecisionGroupIndexLabel] + ":" + object.Labels[clusterv1beta1.DecisionGroupNameLabel]
			for _, decision := range object.Status.Decisions {
				c.seen[object.Name] = append(c.seen[object.Name], group+" "+decision.ClusterName)
			}
		case <-timeout:
			require.Equal(t, want, c.clusters())
			return
		}
	}
}

func (c *consumer) clusters() []string {
	all := sets.New[string]()
	for _, clusters := range c.seen {
		all.Insert(clusters...)
	}
	if len(all) == 0 {
		return nil
	}
	return sets.List(all)
}

// Clusters with a taint are for those who tolerate it: by value, by key, for a while,
// or all of them.
func TestStory08TolerationsSelectTaintedClusters(t *testing.T) {
	s := newFleet(t, "")
	taint := func(value string, effect clusterv1.TaintEffect) traits {
		return traits{taints: []clusterv1.Taint{{Key: "hardware", Value: value, Effect: effect, TimeAdded: metav1.Now()}}}
	}
	s.join(t, "plain", traits{})
	s.join(t, "gpu", taint("gpu", clusterv1.TaintEffectNoSelect))
	s.join(t, "fpga", taint("fpga", clusterv1.TaintEffectNoSelect))
	s.join(t, "avoided", taint("old", clusterv1.TaintEffectPreferNoSelect))
	s.place(t, "none", `{}`)
	s.place(t, "gpu", `tolerations: [{key: hardware, operator: Equal, value: gpu}]`)
	s.place(t, "any-hardware", `tolerations: [{key: hardware, operator: Exists}]`)
	s.place(t, "everything", `tolerations: [{operator: Exists}]`)
	s.place(t, "another-effect", `tolerations: [{key: hardware, operator: Exists, effect: NoSelectIfNew}]`)
	s.place(t, "one", steady+"numberOfClusters: 1")
	s.requireSelected(t, "none", "avoided", "plain")
	s.requireSelected(t, "gpu", "avoided", "gpu", "plain")
	s.requireSelected(t, "any-hardware", "avoided", "fpga", "gpu", "plain")
	s.requireSelected(t, "everything", "avoided", "fpga", "gpu", "plain")
	s.requireSelected(t, "another-effect", "avoided", "plain")
	s.requireSelected(t, "one", "plain")

	change(t, s, read(t, s, "", "plain", &clusterv1.ManagedCluster{}), func(c *clusterv1.ManagedCluster) {
		c.Spec.Taints = taint("gpu", clusterv1.TaintEffectNoSelectIfNew).taints
	})
	s.requireSelected(t, "none", "avoided", "plain") // it was selected before
	s.place(t, "new", `{}`)
	s.requireSelected(t, "new", "avoided")
	s.place(t, "for-a-while", `tolerations: [{key: hardware, operator: Exists, tolerationSeconds: 3600}, {key: leaving, operator: Exists, tolerationSeconds: 2}]`)
	s.requireSelected(t, "for-a-while", "avoided", "fpga", "gpu", "plain")
	change(t, s, read(t, s, "", "fpga", &clusterv1.ManagedCluster{}), func(c *clusterv1.ManagedCluster) {
		c.Spec.Taints = []clusterv1.Taint{{Key: "leaving", Effect: clusterv1.TaintEffectNoSelect, TimeAdded: metav1.Now()}}
	})
	s.requireSelected(t, "everything", "avoided", "fpga", "gpu", "plain")
	s.requireSelected(t, "for-a-while", "avoided", "gpu", "plain")
}

// How a decision was made shows in the conditions, which count what each filter
// removed, in reason and score of each decision, in events with the scores, and in
// metrics of what ran.
func TestStory09HowADecisionIsMade(t *testing.T) {
	s := newFleet(t, "")
	for name, cloud := range map[string]string{"a": "aws", "b": "aws", "c": "gcp", "d": "aws"} {
		s.join(t, name, traits{labels: map[string]string{"cloud": cloud}})
	}
	s.fail(t, "d")
	s.score(t, s, "b", "default", cpuRatio, 70)
	filters, scorings := s.observed.count(placement.KindFilter, placement.TaintToleration), s.observed.count(placement.KindPrioritizer, "AddOn/default/cpuratio")
	const total = "controller_runtime_reconcile_total"
	reconciled := counted(t, total)
	spec := "predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {cloud: aws}}}}]\n"
	s.place(t, "explained", spec+best(3, "default", cpuRatio, 2))
	s.requireSelected(t, "explained", "a", "b")
	s.requireCondition(t, "explained", clusterv1beta1.PlacementConditionSatisfied, "False "+placement.ReasonNotScheduled,
		"1 cluster decisions unscheduled (4 clusters available, Predicate removed 1, TaintToleration removed 1)")
	const reason = "in ManagedClusterSet global, matches spec.predicates[0]"
	require.Equal(t, []clusterv1beta1.ClusterDecision{
		{ClusterName: "a", Reason: reason}, {ClusterName: "b", Reason: reason, Score: 140},
	}, s.decisions(t, "explained"))
	env.Becomes(t, []string{"a:0 b:140 "}, func() []string { return s.notes(t, "explained", "ScoreUpdate") })
	require.Greater(t, s.observed.count(placement.KindFilter, placement.TaintToleration), filters)
	require.Greater(t, s.observed.count(placement.KindPrioritizer, "AddOn/default/cpuratio"), scorings)
	env.Becomes(t, true, func() bool { return counted(t, total) > reconciled })

	change(t, s, s.live(t, "explained"), func(p *clusterv1beta1.Placement) {
		p.Spec.Predicates[0].RequiredClusterSelector.LabelSelector.MatchLabels["cloud"] = "azure"
	})
	s.requireSelected(t, "explained")
	s.requireCondition(t, "explained", clusterv1beta1.PlacementConditionSatisfied, "False "+placement.ReasonNoneMatched,
		"(4 clusters available, Predicate removed 4, TaintToleration removed 0)")
}

// counted is what a metric of the controller has counted.
func counted(t *testing.T, name string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	require.NoError(t, err)
	total := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "controller" && label.GetValue() == controller.Name {
					total += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return total
}

// Conditions select clusters: those that are available, by expression, or because
// whoever sees that one is not gives it a taint.
func TestStory10AvailableClusters(t *testing.T) {
	s := newFleet(t, "")
	s.join(t, "up", traits{available: metav1.ConditionTrue})
	s.join(t, "down", traits{available: metav1.ConditionFalse})
	unknown := s.join(t, "unknown", traits{available: metav1.ConditionUnknown})
	s.join(t, "tainted", traits{available: metav1.ConditionTrue, taints: unavailable})
	const expression = `managedCluster.status.conditions.exists(c, c.type == "ManagedClusterConditionAvailable" && c.status == "True")`
	s.place(t, "by-condition", fmt.Sprintf("predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['%s']}}}]\ntolerations: [{operator: Exists}]", expression))
	s.place(t, "by-taint", `{}`)
	s.requireSelected(t, "by-condition", "tainted", "up")
	s.requireSelected(t, "by-taint", "down", "unknown", "up")

	changeStatus(t, s, unknown, func(c *clusterv1.ManagedCluster) { setAvailable(c, metav1.ConditionTrue) })
	s.requireSelected(t, "by-condition", "tainted", "unknown", "up")
	changeStatus(t, s, read(t, s, "", "up", &clusterv1.ManagedCluster{}), func(c *clusterv1.ManagedCluster) { setAvailable(c, metav1.ConditionFalse) })
	s.fail(t, "up")
	s.mend(t, "tainted")
	s.requireSelected(t, "by-condition", "tainted", "unknown")
	s.requireSelected(t, "by-taint", "down", "tainted", "unknown")
}
