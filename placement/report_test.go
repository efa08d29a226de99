// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/report"
)

// manyClusters returns 3,000 clusters. Every tenth has a taint, and every third lacks the label "tier".
func manyClusters() []*clusterv1.ManagedCluster {
	names := make([]string, 3000)
	for i := range names {
		names[i] = fmt.Sprintf("c%04d", i)
	}
	clusters := several(names...)
	for i, c := range clusters {
		c.Labels = map[string]string{"tier": fmt.Sprint(i % 3)}
		if i%3 == 0 {
			c.Labels = map[string]string{"zone": fmt.Sprint(i)}
		}
		if i%10 == 0 {
			c.Spec.Taints = []clusterv1.Taint{{Key: "down", Effect: clusterv1.TaintEffectNoSelect}}
		}
	}
	return clusters
}

func TestTextGroupsClusters(t *testing.T) {
	object := placed(t, "numberOfClusters: 2\n"+withExpressions(`managedCluster.metadata.labels.tier == "1"`))
	result := schedule(t, object, newHub(manyClusters()...))
	require.Equal(t, `PlacementMisconfigured=False Succeedconfigured: Placement configurations check pass
PlacementEvaluationFailed=True EvaluationFailed: The evaluation failed on 1000 clusters, so these clusters are not selected:
c0000 can't be evaluated: EXPRESSION
c0003 can't be evaluated: EXPRESSION
c0006 can't be evaluated: EXPRESSION
and 997 more
PlacementSatisfied=True AllDecisionsScheduled: All cluster decisions scheduled

sets global: 3000 clusters
Predicate removed 2000
  1000 clusters (c0000, c0003, c0006 and 997 more): can't be evaluated: EXPRESSION
  1000 clusters (c0002, c0005, c0008 and 997 more): does not match spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[0]
TaintToleration removed 100
  100 clusters (c0010, c0040, c0070 and 97 more): has the taint down:NoSelect, which the Placement does not tolerate

CLUSTER  TOTAL  Balance*1  Steady*1  VERDICT
c0001    100    100        0         selected
c0004    100    100        0         selected
c0007    100    100        0         is not among the first 2
c0013    100    100        0         is not among the first 2
c0016    100    100        0         is not among the first 2
... and 895 more: is not among the first 2
`, withoutErrors(described(result)))

	one := described(result, "c0010", "c0007", "elsewhere")
	require.Contains(t, one, "  elsewhere does not exist, or is not in these sets\n")
	require.Contains(t, one, "TaintToleration removed 100\n  c0010 has the taint down:NoSelect, which the Placement does not tolerate\n")
	require.Contains(t, one, "\nc0007    100    100        0         is not among the first 2\n")
	require.NotContains(t, one, "c0001")

	h := newHub(manyClusters()...)
	h.bindings = nil
	require.Contains(t, described(schedule(t, object, h), "c0001"), "  c0001 does not exist, or is not in these sets\n")
}

// described returns the report about a result as text. clusters are the clusters that the report explains.
func described(result *placement.Result, clusters ...string) string {
	return report.New(&clusterv1beta1.Placement{}, result, nil, report.Options{All: true, Clusters: clusters}).Text()
}

// withoutErrors removes error messages of CEL from a report.
func withoutErrors(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		before, _, failed := strings.Cut(line, "can't be evaluated: ")
		switch {
		case failed:
			lines = append(lines, before+"can't be evaluated: EXPRESSION")
		case !strings.HasPrefix(strings.TrimSpace(line), "|"):
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// TestTextIsBounded checks that a report stays short if clusters are not selected for very many different reasons.
func TestTextIsBounded(t *testing.T) {
	clusters := manyClusters()
	for i, c := range clusters {
		if i%2 == 0 {
			c.Spec.Taints = []clusterv1.Taint{{Key: fmt.Sprint("down", i), Effect: clusterv1.TaintEffectNoSelect}}
			continue
		}
		c.Labels = map[string]string{"zone": fmt.Sprint(i)}
	}
	object := placed(t, `numberOfClusters: 3000
spreadPolicy: {spreadConstraints: [{topologyKey: tier, topologyKeyType: Label, whenUnsatisfiable: DoNotSchedule}]}`)
	text := described(schedule(t, object, newHub(clusters...)))
	require.Contains(t, text, "  1490 more clusters, for 1490 other reasons\n")
	require.Less(t, strings.Count(text, "\n"), 40, text)

	text = described(schedule(t, placed(t, ""), newHub(manyClusters()...)))
	require.Contains(t, text, "\n... and 2680 more: selected\n")
	require.Equal(t, 20, strings.Count(text, "  selected\n"))
}
