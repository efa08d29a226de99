// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/placement"
)

func hubOfClouds() *hub {
	return newHub(
		claiming(managed("a", "cloud=aws", "env=prod"), "version=1.30", "note=https://x y"),
		claiming(managed("b", "cloud=gcp", "env=prod"), "version=1.29"),
		managed("c", "cloud=aws"),
	)
}

func TestPredicates(t *testing.T) {
	const prefix = `predicates: [{requiredClusterSelector: `
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"none":                  {``, []string{"a", "b", "c"}},
		"empty":                 {`predicates: [{}]`, []string{"a", "b", "c"}},
		"label":                 {prefix + `{labelSelector: {matchLabels: {cloud: aws}}}}]`, []string{"a", "c"}},
		"label In":              {prefix + `{labelSelector: {matchExpressions: [{key: cloud, operator: In, values: [gcp]}]}}}]`, []string{"b"}},
		"label NotIn":           {prefix + `{labelSelector: {matchExpressions: [{key: env, operator: NotIn, values: [prod]}]}}}]`, []string{"c"}},
		"label Exists":          {prefix + `{labelSelector: {matchExpressions: [{key: env, operator: Exists}]}}}]`, []string{"a", "b"}},
		"label DoesNotExist":    {prefix + `{labelSelector: {matchExpressions: [{key: env, operator: DoesNotExist}]}}}]`, []string{"c"}},
		"claim":                 {prefix + `{claimSelector: {matchExpressions: [{key: version, operator: In, values: ["1.30"]}]}}}]`, []string{"a"}},
		"label, claim and CEL":  {prefix + `{labelSelector: {matchLabels: {env: prod}}, claimSelector: {matchExpressions: [{key: version, operator: Exists}]}, celSelector: {celExpressions: ['managedCluster.metadata.name != "a"']}}}]`, []string{"b"}},
		"expressions are ANDed": {withExpressions(`managedCluster.metadata.labels.cloud == "aws"`, `managedCluster.metadata.name == "c"`), []string{"c"}},
		"predicates are ORed":   {prefix + `{labelSelector: {matchLabels: {cloud: gcp}}}}, {requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.metadata.name == "c"']}}}]`, []string{"b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, selected(t, schedule(t, placed(t, test.spec), hubOfClouds())))
		})
	}
}

func TestPredicatesSayWhatDidNotMatch(t *testing.T) {
	result := schedule(t, placed(t, `predicates:
- requiredClusterSelector: {labelSelector: {matchLabels: {cloud: gcp}}}
- requiredClusterSelector:
    labelSelector: {matchLabels: {env: prod}}
    celSelector: {celExpressions: ['true', 'managedCluster.metadata.name == "x"']}
`), hubOfClouds())
	require.Equal(t, map[string]string{
		"a": "does not match spec.predicates[0].requiredClusterSelector.labelSelector, nor spec.predicates[1].requiredClusterSelector.celSelector.celExpressions[1]",
		"c": "does not match spec.predicates[0].requiredClusterSelector.labelSelector, nor spec.predicates[1].requiredClusterSelector.labelSelector",
	}, removedBy(result, placement.Predicate))
	require.Equal(t, 0, result.Candidates[0].Predicate)
	require.Equal(t, "in ManagedClusterSet global, matches spec.predicates[0]", result.Decision.Groups[0].Slices[0].Decisions[0].Reason)
}

func TestBadPredicates(t *testing.T) {
	h := hubOfClouds()
	h.decided("ns", "p", "a", "b")
	for name, test := range map[string]struct{ spec, message string }{
		"label operator": {
			`predicates: [{requiredClusterSelector: {labelSelector: {matchExpressions: [{key: cloud, operator: Gt, values: ["1"]}]}}}]`,
			`Predicate:spec.predicates[0].requiredClusterSelector.labelSelector: "Gt" is not a valid label selector operator`,
		},
		"claim value that is no label value": {
			`predicates: [{requiredClusterSelector: {claimSelector: {matchExpressions: [{key: note, operator: In, values: ["https://x y"]}]}}}]`,
			`Predicate:spec.predicates[0].requiredClusterSelector.claimSelector: `,
		},
		"one of several": {
			`predicates: [{}, {requiredClusterSelector: {celSelector: {celExpressions: ['true', 'managedCluster.metadata.name = "a"']}}}]`,
			"Predicate:spec.predicates[1].requiredClusterSelector.celSelector.celExpressions[1]: ERROR: <input>:1:30: Syntax error: token recognition error at: '= '\n | managedCluster.metadata.name = \"a\"\n | .............................^",
		},
		"not bool":                        {withExpressions(`1`), `celExpressions[0]: ERROR: <input>:1:1: `},
		"empty expression":                {withExpressions(``), `celExpressions[0]: ERROR: <input>:1:0: `},
		"receiver of scores is checked":   {withExpressions(`{"metadata": {"name": "b"}}.scores("x").size() > 0`), `scores() can be called on managedCluster only`},
		"all mistakes are in the message": {withExpressions(`a`, `b`), `celExpressions[1]: ERROR: <input>:1:1: undeclared reference to 'b'`},
	} {
		t.Run(name, func(t *testing.T) {
			requireMisconfigured(t, schedule(t, placed(t, test.spec), h), test.message)
		})
	}
}

func TestFailedEvaluations(t *testing.T) {
	h := newHub(managed("a", "n=1"), managed("b"), managed("c"), managed("d"), managed("e"), managed("f", "n=1"))
	h.decided("ns", "p", "b")
	result := schedule(t, placed(t, withExpressions(`managedCluster.metadata.labels["n"] == "1"`)), h)
	require.Equal(t, []string{"a", "f"}, selected(t, result), "b is not selected: others are")
	condition := meta.FindStatusCondition(result.Conditions, placement.ConditionEvaluationFailed)
	require.Equal(t, metav1.ConditionTrue, condition.Status)
	require.Contains(t, condition.Message, "The evaluation failed on 4 clusters, which are not selected:\nb can't be evaluated: spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[0]: cluster b: ERROR: <input>:1:")
	require.Contains(t, condition.Message, "\nd can't be evaluated")
	require.NotContains(t, condition.Message, "\ne can't be evaluated")
	require.Contains(t, condition.Message, "and 1 more")
	requireCondition(t, result, "PlacementMisconfigured", metav1.ConditionFalse, placement.ReasonConfigured, "Placement configurations check pass")
	require.Contains(t, removedBy(result, placement.Predicate)["e"], "no such key: labels")
}

func TestFailedEvaluationDoesNotMatterWhereAnotherPredicateMatches(t *testing.T) {
	result := schedule(t, placed(t, `predicates:
- requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.metadata.labels["n"] == "1"']}}
- requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.metadata.name == "b"']}}
`), newHub(several("a", "b")...))
	require.Equal(t, []string{"b"}, selected(t, result))
	requireCondition(t, result, placement.ConditionEvaluationFailed, metav1.ConditionTrue, placement.ReasonEvaluationFailed, "failed on 1 clusters")
}

// An error that no one else can make up for must not empty a decision.
func TestFailedEvaluationsDoNotEmptyADecision(t *testing.T) {
	const typo = `managedCluster.status.varsion.kubernetes == "v1.30.0"`
	h := newHub(several("a", "b")...)
	h.decided("ns", "p", "a")
	result := schedule(t, placed(t, withExpressions(typo)), h)
	require.Nil(t, result.Decision)
	requireSatisfied(t, result, metav1.ConditionFalse, placement.ReasonNotScheduled, "the former decision stands")
	requireCondition(t, result, placement.ConditionEvaluationFailed, metav1.ConditionTrue, placement.ReasonEvaluationFailed, "failed on 2 clusters")

	t.Run("unless the clusters can't stay anyway", func(t *testing.T) {
		tainting(h.clusters[0], "broken", "NoSelect")
		require.Empty(t, selected(t, schedule(t, placed(t, withExpressions(typo)), h)))
		h.clusters = h.clusters[1:]
		require.Empty(t, selected(t, schedule(t, placed(t, withExpressions(typo)), h)))
	})
	t.Run("unless none are wanted", func(t *testing.T) {
		h := newHub(several("a")...)
		h.decided("ns", "p", "a")
		require.Empty(t, selected(t, schedule(t, placed(t, withExpressions(typo)+"numberOfClusters: 0\n"), h)))
	})
	t.Run("unless there was none", func(t *testing.T) {
		require.Empty(t, selected(t, schedule(t, placed(t, withExpressions(typo)), newHub(several("a")...))))
	})
}

func TestMessagesFit(t *testing.T) {
	var texts []string
	for i := range placement.MaxExpressions {
		texts = append(texts, strings.Repeat(fmt.Sprintf("größe%d + ", i), 50)+"1")
	}
	result := schedule(t, placed(t, withExpressions(texts...)), newHub(several("a")...))
	condition := meta.FindStatusCondition(result.Conditions, "PlacementMisconfigured")
	require.LessOrEqual(t, len(condition.Message), 32768)
	require.Regexp(t, "…$", condition.Message)
	require.True(t, len(condition.Message) > 32000)
}

func TestSnapshotThatCanNotBeRead(t *testing.T) {
	for name, spec := range map[string]string{
		"in an expression": withExpressions(`managedCluster.scores("x").size() == 0 || true`),
		"as a prioritizer": `prioritizerPolicy: {configurations: [{weight: 1, scoreCoordinate: {type: AddOn, addOn: {resourceName: x, scoreName: y}}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(several("a")...)
			h.broken = errors.New("the cache is broken")
			result, err := newScheduler(t).Schedule(t.Context(), placed(t, spec), h.snapshot(), now)
			require.EqualError(t, err, "get AddOnPlacementScore a/x: the cache is broken")
			require.ErrorIs(t, err, h.broken)
			require.Nil(t, result.Decision)
			requireSatisfied(t, result, metav1.ConditionFalse, placement.ReasonNotScheduled, "the cache is broken; the former decision stands")
		})
	}
}

func TestInterruption(t *testing.T) {
	s, h, object := newScheduler(t), newHub(several("a")...), placed(t, withExpressions(`true`))
	cause := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	result, err := s.Schedule(ctx, object, h.snapshot(), now)
	require.ErrorIs(t, err, cause)
	require.Nil(t, result.Decision)
	result, err = s.Schedule(t.Context(), object, h.snapshot(), now)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, selected(t, result), "an interrupted evaluation is not remembered")
}

func TestMissingArguments(t *testing.T) {
	s, h, object := newScheduler(t), newHub(), placed(t, ``)
	for name, call := range map[string]func() (*placement.Result, error){
		"placement": func() (*placement.Result, error) { return s.Schedule(t.Context(), nil, h.snapshot(), now) },
		"snapshot":  func() (*placement.Result, error) { return s.Schedule(t.Context(), object, nil, now) },
		"time": func() (*placement.Result, error) {
			return s.Schedule(t.Context(), object, h.snapshot(), metav1.Time{}.Time)
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := call()
			require.EqualError(t, err, "schedule: placement, snapshot and time must be given")
			require.Nil(t, result.Decision)
			require.Empty(t, result.Conditions)
		})
	}
	require.Len(t, uninterrupted(s.Validate(t.Context(), nil)), 1)
	result, err := s.Schedule(t.Context(), object, &placement.Snapshot{}, now)
	require.NoError(t, err)
	require.Empty(t, selected(t, result), "an empty snapshot is one")
}
