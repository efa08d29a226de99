// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/internal/testing/env"
	"github.com/celset/celset/placement"
)

// The examples of the proposal "Placement extensible scheduling".

const (
	cpuRatio        = "cpuratio"
	recoveryScores  = "examples/placement/disaster-recovery-scores.yaml"
	disasterRecover = "disaster-recovery"
)

// exampleScore is read by a Placement for each of its scores.
func exampleScore(t *testing.T, file string) {
	s := newFleet(t, "ns1")
	s.join(t, "cluster1", traits{})
	s.join(t, "other", traits{})
	s.apply(t, file)
	for name, want := range map[string]int64{cpuRatio: 88, "memratio": 77, "cpu": 66, "mem": 55} {
		s.place(t, name, best(1, "default", name, 1))
		s.requireSelected(t, name, "cluster1")
		require.Equal(t, want, s.decisions(t, name)[0].Score)
	}
}

// best is the spec of a Placement for the n clusters with the best scores.
func best(n int, resource, name string, weight int) string {
	return fmt.Sprintf(`
numberOfClusters: %d
prioritizerPolicy:
  mode: Exact
  configurations:
  - {scoreCoordinate: {type: AddOn, addOn: {resourceName: %s, scoreName: %s}}, weight: %d}
`, n, resource, name, weight)
}

// exampleScoreSteady: what is selected stays until another cluster is better by more
// than Steady gives. A score that is missing, in another object or expired is 0.
func exampleScoreSteady(t *testing.T, file string) {
	const name = "score-steady"
	s := newFleet(t, "ns1")
	for cluster, value := range map[string]int32{"a": 88, "b": 10, "c": -5, "d": -20} {
		s.join(t, cluster, traits{})
		s.score(t, s, cluster, "default", cpuRatio, value)
	}
	s.join(t, "without", traits{})
	s.join(t, "without-this", traits{})
	s.score(t, s, "without-this", "default", "memratio", 100)
	s.apply(t, file)
	s.requireSelected(t, name, "a", "b", "without")
	change(t, s, s.live(t, name), func(p *clusterv1beta1.Placement) { p.Spec.ScoreRateLimit = "0s" })
	s.score(t, s, "without-this", "default", cpuRatio, 100)
	s.score(t, s, "b", "default", cpuRatio, -100)
	env.Becomes(t, "a:388 b:200 without:300 ", func() string { return s.scores(t, name) })
	s.requireSelected(t, name, "a", "b", "without")

	s.fail(t, "b")
	s.requireSelected(t, name, "a", "without", "without-this")
	s.mend(t, "b")
	changeStatus(t, s, read(t, s, "a", "default", &clusterv1alpha1.AddOnPlacementScore{}), func(scores *clusterv1alpha1.AddOnPlacementScore) {
		scores.Status.ValidUntil = ptr.To(metav1.NewTime(time.Now().Add(-time.Hour)))
	})
	env.Becomes(t, "a:300 without:300 without-this:400 ", func() string { return s.scores(t, name) })
	env.Becomes(t, []string{"AddOnPlacementScores a/default expired; they count as 0 in plugin AddOn/default/cpuratio"},
		func() []string { return s.notes(t, name, placement.ReasonScoreExpired) })
}

// exampleScoreEach: both scores are read, each for itself.
func exampleScoreEach(t *testing.T, file string) {
	s := newFleet(t, "ns1")
	s.join(t, "cluster1", traits{})
	s.join(t, "cluster2", traits{})
	s.score(t, s, "cluster1", "default", cpuRatio, 87)
	s.score(t, s, "cluster1", "default", "memratio", 78)
	s.apply(t, file)
	s.place(t, "cpu", best(1, "default", cpuRatio, 1))
	s.place(t, "memory", best(1, "default", "memratio", 1))
	s.requireSelected(t, "cpu", "cluster2")
	s.requireSelected(t, "memory", "cluster1")
}

// scoredFleet has five clusters with scores.
func scoredFleet(t *testing.T) scene {
	t.Helper()
	s := newFleet(t, "ns1")
	for cluster, value := range map[string]int32{"cluster1": 20, "cluster2": 88, "cluster3": -7, "cluster4": 45, "cluster5": 46} {
		s.join(t, cluster, traits{})
		s.score(t, s, cluster, "default", cpuRatio, value)
	}
	return s
}

func exampleScoreBest(t *testing.T, file string) {
	s := scoredFleet(t)
	s.apply(t, file)
	s.requireSelected(t, "score-best", "cluster2", "cluster4", "cluster5")
	s.score(t, s, "cluster3", "default", cpuRatio, 100)
	s.requireSelected(t, "score-best", "cluster2", "cluster3", "cluster5")
}

func exampleScoreWorst(t *testing.T, file string) {
	s := scoredFleet(t)
	s.apply(t, file)
	s.requireSelected(t, "score-worst", "cluster3")
	s.score(t, s, "cluster2", "default", cpuRatio, -8)
	s.requireSelected(t, "score-worst", "cluster2")
}

// recovery has the two clusters of the story.
func recovery(t *testing.T) scene {
	t.Helper()
	s := newFleet(t, "ns1")
	s.join(t, "primary", traits{})
	s.join(t, "backup", traits{})
	return s
}

func exampleDisasterRecoveryScores(t *testing.T, file string) {
	s := recovery(t)
	s.apply(t, file)
	s.place(t, "both", best(2, "disasterrecovery", "workload", 1))
	s.requireSelected(t, "both", "backup", "primary")
	require.Equal(t, "backup:0 primary:100 ", s.scores(t, "both"))
}

func exampleDisasterRecovery(t *testing.T, file string) {
	s := recovery(t)
	s.apply(t, recoveryScores)
	s.apply(t, file)
	s.requireSelected(t, disasterRecover, "primary")
	s.fail(t, "primary")
	s.requireSelected(t, disasterRecover, "backup")
	s.mend(t, "primary")
	s.requireSelected(t, disasterRecover, "primary")
}

// fail gives a cluster the taint of one that is not available.
func (s scene) fail(t *testing.T, name string) {
	t.Helper()
	change(t, s, read(t, s, "", name, &clusterv1.ManagedCluster{}), func(c *clusterv1.ManagedCluster) { c.Spec.Taints = unavailable })
}

// mend takes it away.
func (s scene) mend(t *testing.T, name string) {
	t.Helper()
	change(t, s, read(t, s, "", name, &clusterv1.ManagedCluster{}), func(c *clusterv1.ManagedCluster) { c.Spec.Taints = nil })
}

// scores are those in the decisions of a Placement.
func (s scene) scores(t *testing.T, name string) string {
	t.Helper()
	var text string
	for _, decision := range s.decisions(t, name) {
		text += fmt.Sprintf("%s:%d ", decision.ClusterName, decision.Score)
	}
	return text
}
