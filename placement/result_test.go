// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement"
)

func TestScoreSummaryIsCut(t *testing.T) {
	h := newHub()
	for i := range 200 {
		h.clusters = append(h.clusters, managed(fmt.Sprintf("cluster%03d", i)))
	}
	h.decided("ns", "p", "cluster199")
	summary := schedule(t, placed(t, ``), h).ScoreSummary()
	require.True(t, strings.HasPrefix(summary, "cluster000:100 cluster001:100 "), "by name, not by rank: %s", summary)
	require.True(t, strings.HasSuffix(summary, "......"))
	require.Len(t, summary, 1006)
	require.Empty(t, (&placement.Result{}).ScoreSummary())
}

func TestDescribe(t *testing.T) {
	h := newHub(tainting(managed("a", "n=1"), "slow", "PreferNoSelect"), managed("b"), managed("c", "n=1"))
	h.score("c", "r", map[string]int32{"s": -101})
	text := schedule(t, placed(t, withExpressions(`managedCluster.metadata.labels["n"] == "1"`)+exactly()+addOn("r", "s", 1)), h).Describe()
	for _, part := range []string{
		"PlacementEvaluationFailed=True EvaluationFailed: The evaluation failed on 1 clusters",
		"warning: AddOn/r/s: AddOnPlacementScores c/r (-101) are not from -100 to 100",
		"sets global: 3 clusters\nPredicate removed 1\n  b can't be evaluated: ",
		"\n     | managedCluster.metadata.labels[\"n\"] == \"1\"\n",
		"a        0      0            selected, avoided for slow:PreferNoSelect\n",
		"c        -100   -100         selected\n",
	} {
		require.Contains(t, text, part)
	}
	misconfigured := schedule(t, placed(t, `numberOfClusters: -1`), h).Describe()
	require.Contains(t, misconfigured, "PlacementMisconfigured=True Misconfigured: Selection:spec.numberOfClusters")
	require.NotContains(t, misconfigured, "CLUSTER")
}

// plugins notes what runs.
type plugins struct{ log []string }

func (p *plugins) ObservePlugin(kind, name string) (end func()) {
	p.log = append(p.log, kind+" "+name)
	return func() { p.log = append(p.log, "end") }
}

func (p *plugins) ObserveSchedule() (end func(*placement.Result, error)) {
	p.log = append(p.log, "schedule")
	return func(result *placement.Result, err error) {
		p.log = append(p.log, fmt.Sprintf("decided %t, failed %t, evaluated %d, remembered %d",
			result.Decision != nil, err != nil, result.Evaluated, result.Remembered))
	}
}

func TestObserver(t *testing.T) {
	observer := &plugins{}
	s, err := placement.NewScheduler(placement.Config{Environment: environment, Observer: observer})
	require.NoError(t, err)
	object := placed(t, spreadOver("numberOfClusters: 1\n"+exactly("Steady 1")+addOn("r", "s", 1), hard))
	_, err = s.Schedule(t.Context(), object, newHub(several("a", "b")...).snapshot(), now)
	require.NoError(t, err)
	require.Equal(t, []string{
		"schedule", "filter Predicate", "end", "filter TaintToleration", "end",
		"prioritizer Steady", "end", "prioritizer AddOn/r/s", "end", "spread Spread", "end",
		"decided true, failed false, evaluated 0, remembered 0",
	}, observer.log)
}

func TestObserverSeesOutcomes(t *testing.T) {
	observer := &plugins{}
	s, err := placement.NewScheduler(placement.Config{Environment: environment, Observer: observer})
	require.NoError(t, err)
	h := newHub(several("a", "b", "c")...)
	last := func(object *clusterv1beta1.Placement) string {
		_, _ = s.Schedule(t.Context(), object, h.snapshot(), now)
		return observer.log[len(observer.log)-1]
	}
	object := placed(t, withExpressions(`true`))
	require.Equal(t, "decided true, failed false, evaluated 3, remembered 0", last(object))
	h.clusters[1] = managed("b")
	h.clusters[1].ResourceVersion = "2"
	require.Equal(t, "decided true, failed false, evaluated 1, remembered 2", last(object))
	object.Generation, object.Spec.NumberOfClusters = 2, number(-1)
	require.Equal(t, "decided false, failed false, evaluated 0, remembered 0", last(object))
	object.Generation, object.Spec = 3, placed(t, withExpressions(`managedCluster.scores("r").size() == 0`)).Spec
	h.broken = errors.New("gone")
	require.Equal(t, "decided false, failed true, evaluated 0, remembered 0", last(object))
}

func TestValidate(t *testing.T) {
	s := newScheduler(t)
	require.Empty(t, uninterrupted(s.Validate(t.Context(), placed(t, withExpressions(`true`)))))
	object := placed(t, withExpressions(`true`, `1`, `a b`)+"numberOfClusters: -1\n")
	object.Annotations = map[string]string{placement.TieBreakAnnotation: "x"}
	var got []string
	for _, one := range uninterrupted(s.Validate(t.Context(), object)) {
		got = append(got, one.Plugin+" "+one.Path.String())
	}
	require.Equal(t, []string{
		"Predicate spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[1]",
		"Predicate spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[2]",
		"Selection spec.numberOfClusters",
		"Selection metadata.annotations[celset.dev/tie-break]",
	}, got)
}
