// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cmd/kubectl-celset/cli"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/controller"
	"github.com/celset/celset/test/internal/env"
)

// The tests below are user stories 6 to 10 of the proposal "New Placement APIs".

// TestStory07ControllerConsumesPlacement acts as a controller that watches the PlacementDecisions of a Placement by their
// label. After each change it must see which clusters were added and removed, over several objects and groups.
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

// A consumer holds a controller's view of a Placement's decisions. seen maps each watched PlacementDecision to the index and
// name of its group and to its clusters.
type consumer struct {
	watch.Interface
	seen map[string][]string
}

func (s scene) consume(t testing.TB, name string) *consumer {
	t.Helper()
	w, err := s.Watch(t.Context(), &clusterv1beta1.PlacementDecisionList{}, client.InNamespace(s.namespace),
		client.MatchingLabels{clusterv1beta1.PlacementLabel: name},
		&client.ListOptions{Raw: &metav1.ListOptions{SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return &consumer{w, map[string][]string{}}
}

// until reads events of the watch until exactly these clusters are selected.
func (c *consumer) until(t testing.TB, want ...string) {
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

// TestStory09HowADecisionIsMade checks how users can find the reasons for a decision: conditions count the clusters that each
// filter removed, each decision has a reason and a score, events contain the scores, and metrics count the runs of plugins.
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
	s.requireCondition(t, "explained", clusterv1beta1.PlacementConditionSatisfied, "False "+wellknown.ReasonNotScheduled,
		"1 cluster decisions unscheduled (4 clusters available, Predicate removed 1, TaintToleration removed 1)")
	const reason = "in ManagedClusterSet global, matches spec.predicates[0]"
	require.Equal(t, []clusterv1beta1.ClusterDecision{
		{ClusterName: "a", Reason: reason}, {ClusterName: "b", Reason: reason, Score: 140},
	}, s.decisions(t, "explained"))
	env.Becomes(t, []string{"a:0 b:140 "}, func() []string { return s.notes(t, "explained", "ScoreUpdate") })
	// The command line must predict the controller's decision.
	var explained bytes.Buffer
	require.Equal(t, cli.ExitOK, cli.Run(t.Context(), []string{"explain", "placement/explained", "--kubeconfig=" + s.Kubeconfig(), "--namespace=" + s.namespace},
		genericiooptions.IOStreams{Out: &explained, ErrOut: &explained}), &explained)
	require.Contains(t, explained.String(), "  selects 2 of 4 clusters: a, b\n  PlacementMisconfigured=False")
	require.Greater(t, s.observed.count(placement.KindFilter, placement.TaintToleration), filters)
	require.Greater(t, s.observed.count(placement.KindPrioritizer, "AddOn/default/cpuratio"), scorings)
	env.Becomes(t, true, func() bool { return counted(t, total) > reconciled })

	change(t, s, s.live(t, "explained"), func(p *clusterv1beta1.Placement) {
		p.Spec.Predicates[0].RequiredClusterSelector.LabelSelector.MatchLabels["cloud"] = "azure"
	})
	s.requireSelected(t, "explained")
	s.requireCondition(t, "explained", clusterv1beta1.PlacementConditionSatisfied, "False "+wellknown.ReasonNoneMatched,
		"(4 clusters available, Predicate removed 4, TaintToleration removed 0)")
}

// counted returns the value of a counter of the controller.
func counted(t testing.TB, name string) float64 {
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
