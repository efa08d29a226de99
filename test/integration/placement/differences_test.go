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
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/internal/testing/env"
	"github.com/celset/celset/placement"
)

// What docs/ocm.md#differences-from-ocm says of mistakes and warnings, where it takes an
// API server to see it.

// Every mistake that the API server lets pass leaves the PlacementDecision unwritten
// and is named with its place; when it is mended, the decision goes on.
func TestMistakesKeepDecisionsUntilMended(t *testing.T) {
	const name = "edited"
	s := newFleet(t, "")
	s.join(t, "a", traits{labels: map[string]string{"cloud": "aws"}})
	s.join(t, "b", traits{labels: map[string]string{"cloud": "gcp"}})
	good := s.place(t, name, `predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {cloud: aws}}}}]`).Spec
	s.requireSelected(t, name, "a")
	decision := func() string {
		return read(t, s, s.namespace, name+"-decision-1", &clusterv1beta1.PlacementDecision{}).ResourceVersion
	}
	version := decision()
	for mistake, test := range map[string]struct {
		spec  string
		texts []string
	}{
		"expression": {`predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.metadata.name = "b"']}}}]`,
			[]string{"Predicate:spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[0]: ERROR: <input>:1:30: Syntax error", "\n | .............................^"}},
		"not bool": {`predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['true', 'size(managedCluster)']}}}]`,
			[]string{"celExpressions[1]: ERROR: <input>:1:1: the expression must return bool, it returns int"}},
		"one predicate of several": {`predicates: [{}, {requiredClusterSelector: {labelSelector: {matchExpressions: [{key: cloud, operator: Gt, values: ["1"]}]}}}]`,
			[]string{`Predicate:spec.predicates[1].requiredClusterSelector.labelSelector: "Gt" is not a valid label selector operator`}},
		"negative number": {`numberOfClusters: -1`, []string{"Selection:spec.numberOfClusters: the number -1 is negative"}},
		"unknown prioritizer": {`prioritizerPolicy: {mode: Exact, configurations: [{scoreCoordinate: {type: BuiltIn, builtIn: Luck}}]}`,
			[]string{"Prioritizer:spec.prioritizerPolicy.configurations[0].scoreCoordinate.builtIn: incorrect builtin prioritizer: Luck"}},
		"prioritizer twice": {fmt.Sprintf(weighted, "{type: AddOn, addOn: {resourceName: r, scoreName: s}}", 1, "{type: AddOn, addOn: {resourceName: r, scoreName: s}}", 2),
			[]string{"Prioritizer:spec.prioritizerPolicy.configurations[1]: AddOn/r/s is configured by spec.prioritizerPolicy.configurations[0] already"}},
		"toleration": {`tolerations: [{value: x}]`, []string{"TaintToleration:spec.tolerations[0].operator: If the key is empty, operator must be Exists."}},
	} {
		t.Run(mistake, func(t *testing.T) {
			change(t, s, s.live(t, name), func(p *clusterv1beta1.Placement) { p.Spec = specOf(t, test.spec) })
			s.requireCondition(t, name, clusterv1beta1.PlacementConditionMisconfigured, "True "+placement.ReasonMisconfigured, test.texts...)
			s.requireCondition(t, name, clusterv1beta1.PlacementConditionSatisfied, "False "+placement.ReasonNotScheduled, "the former decision stands")
			s.requireSelected(t, name, "a")
			require.Equal(t, version, decision(), "nothing may be written")

			change(t, s, s.live(t, name), func(p *clusterv1beta1.Placement) { p.Spec = good })
			s.requireCondition(t, name, clusterv1beta1.PlacementConditionMisconfigured, "False "+placement.ReasonConfigured)
		})
	}
	change(t, s, s.live(t, name), func(p *clusterv1beta1.Placement) { p.Spec = specOf(t, `{}`) })
	s.requireSelected(t, name, "a", "b")
}

// An expression that would cost too much on a large cluster is decided on small ones, as any other.
func TestExpensiveExpressionIsDecided(t *testing.T) {
	s := newFleet(t, "")
	s.join(t, "a", traits{labels: map[string]string{"cloud": "aws"}})
	s.join(t, "b", traits{labels: map[string]string{"cloud": "gcp"}})
	const labels = "managedCluster.metadata.labels"
	s.place(t, "nested", fmt.Sprintf(`predicates: [{requiredClusterSelector: {celSelector: {celExpressions: [
		'%[1]s.exists(a, %[1]s.exists(b, %[1]s.exists(c, %[1]s.exists(d, %[1]s[a] + %[1]s[b] + %[1]s[c] + %[1]s[d] == "awsawsawsaws"))))']}}}]`, labels))
	s.requireSelected(t, "nested", "a")
	s.requireCondition(t, "nested", clusterv1beta1.PlacementConditionMisconfigured, "False "+placement.ReasonConfigured)
}

// An expired score is a warning, once: the decision is made, and not tried again and
// again.
func TestExpiredScoreWarnsWithoutRetries(t *testing.T) {
	const name = "scored"
	s := newFleet(t, "")
	s.join(t, "a", traits{})
	s.join(t, "b", traits{})
	expired := s.score(t, s, "b", "default", cpuRatio, 100)
	changeStatus(t, s, expired, func(scores *clusterv1alpha1.AddOnPlacementScore) {
		scores.Status.ValidUntil = ptr.To(metav1.NewTime(time.Now().Add(-time.Hour)))
	})
	s.place(t, name, best(1, "default", cpuRatio, 1))
	s.requireSelected(t, name, "a")
	s.requireSatisfied(t, name)
	warned := []string{"AddOnPlacementScores b/default expired; they count as 0 in plugin AddOn/default/cpuratio"}
	env.Becomes(t, warned, func() []string { return s.notes(t, name, placement.ReasonScoreExpired) })
	failures := counted(t, "controller_runtime_reconcile_errors_total")
	s.score(t, s, "a", "default", cpuRatio, 1)
	change(t, s, s.live(t, name), func(p *clusterv1beta1.Placement) { p.Spec.NumberOfClusters = ptr.To[int32](2) })
	s.requireSelected(t, name, "a", "b")
	require.Equal(t, warned, s.notes(t, name, placement.ReasonScoreExpired))
	require.InDelta(t, failures, counted(t, "controller_runtime_reconcile_errors_total"), 0)
}

// With spec.sortBy the decisions have the best first, with their scores.
func TestDecisionsAreSortedByScore(t *testing.T) {
	s := newFleet(t, "")
	for cluster, value := range map[string]int32{"a": 1, "b": 90, "c": -4, "d": 90} {
		s.join(t, cluster, traits{})
		s.score(t, s, cluster, "default", cpuRatio, value)
	}
	s.place(t, "sorted", "sortBy: Score\nscoreRateLimit: 0s\n"+best(4, "default", cpuRatio, 1))
	env.Becomes(t, "b:90 d:90 a:1 c:-4 ", func() string { return s.scores(t, "sorted") })
	s.score(t, s, "c", "default", cpuRatio, 91)
	env.Becomes(t, "c:91 b:90 d:90 a:1 ", func() string { return s.scores(t, "sorted") })
}
