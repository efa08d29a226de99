// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
)

func item(name string, value int32) clusterv1alpha1.AddOnPlacementScoreItem {
	return clusterv1alpha1.AddOnPlacementScoreItem{Name: name, Value: value}
}

func TestScores(t *testing.T) {
	scores := score("default", item("cpu", 3), item("memory", 4), item("gpu", -5))
	scores.Annotations = map[string]string{cluster.QuantitiesAnnotation: `{"memory": "300Mi", "gpu": "2.5"}`}
	for _, expression := range []string{
		`managedCluster.scores("default") == [{"name": "cpu", "value": 3, "quantity": 3}, {"name": "memory", "value": 4, "quantity": "300Mi"}, {"name": "gpu", "value": -5, "quantity": "2.5"}]`,
		`type(managedCluster.scores("default")[0].quantity) == int && type(managedCluster.scores("default")[1].quantity) == string`,
		`managedCluster.scores("empty").size() == 0 && managedCluster.scores("empty") == []`,
		`managedCluster.scores("def" + "ault").size() == 3`,
		`[managedCluster].exists(c, c.scores("default").size() == 3)`,
		`cel.bind(c, managedCluster, c.scores("default").size() == 3)`,
		`dyn(managedCluster).scores("default").size() == 3`,
		`{"c": managedCluster}.c.scores("default").size() == 3`,
		`optional.of(managedCluster).value().scores("default").size() == 3`,
	} {
		requireMatch(t, true, expression, cluster.New(cluster1()), hub(scores, score("empty")))
	}
}

func TestScoresThatAreNoneFail(t *testing.T) {
	badAnnotation := score("bad", item("cpu", 3))
	badAnnotation.Annotations = map[string]string{cluster.QuantitiesAnnotation: `{"cpu": 3}`}
	for expression, message := range map[string]string{
		`managedCluster.scores("missing").all(s, true)`:               "AddOnPlacementScore cluster1/missing not found",
		`managedCluster.scores("").all(s, true)`:                      "AddOnPlacementScore cluster1/ not found",
		`managedCluster.scores("broken").all(s, true)`:                "get AddOnPlacementScore cluster1/broken: the cache is broken",
		`managedCluster.scores("bad").all(s, s.quantity > 1)`:         "the annotation celset.dev/quantities of AddOnPlacementScore cluster1/bad must be a JSON object of strings",
		`managedCluster.scores(managedCluster.spec).size() == 0`:      "no such overload",
		`managedCluster.scores("bad").exists(s, s.nothing == 1)`:      "no such key: nothing",
		`[{"metadata": {"name": "cluster1"}}][0].scores("bad") == []`: "scores() can be called on managedCluster only",
		`[managedCluster.metadata].all(c, c.scores("bad") == [])`:     "scores() can be called on managedCluster only",
	} {
		_, err := matches(t, expression, cluster.New(cluster1()), hub(badAnnotation))
		failure := requireError(t, err, cel.ReasonRuntime)
		require.Contains(t, failure.Message, message, expression)
	}
	_, err := matches(t, `managedCluster.scores("broken").size() == 0`, cluster.New(cluster1()), hub())
	require.ErrorIs(t, err, errBroken)
	_, err = matches(t, `managedCluster.scores("default").size() == 0`, cluster.New(cluster1()), cluster.Hub{})
	require.ErrorContains(t, err, "not found")
	requireMatch(t, true, `managedCluster.scores("bad").all(s, s.value == 3)`, cluster.New(cluster1()), hub(badAnnotation))
}

// What all() says of a score that has expired must not select the cluster.
func TestExpiredScores(t *testing.T) {
	const expression = `managedCluster.scores("default").filter(s, s.name == "cpu").all(s, s.value > 1)`
	for name, test := range map[string]struct {
		until   *metav1.Time
		expired bool
	}{
		"for ever":    {},
		"in a second": {until: &metav1.Time{Time: now.Add(time.Second)}},
		"right now":   {until: &metav1.Time{Time: now}},
		"a second":    {until: &metav1.Time{Time: now.Add(-time.Second)}, expired: true},
	} {
		t.Run(name, func(t *testing.T) {
			scores := score("default", item("cpu", 3))
			scores.Status.ValidUntil = test.until
			matched, err := matches(t, expression, cluster.New(cluster1()), hub(scores))
			require.Equal(t, !test.expired, matched)
			if test.expired {
				require.ErrorContains(t, err, "AddOnPlacementScore cluster1/default expired at 2026-08-01T11:59:59Z")
			} else {
				require.NoError(t, err)
			}
		})
	}
}

func TestScoresExpireByTheClockIfNoTimeIsGiven(t *testing.T) {
	for offset, want := range map[time.Duration]bool{time.Hour: true, -time.Hour: false} {
		scores := score("default")
		scores.Status.ValidUntil = &metav1.Time{Time: time.Now().Add(offset)}
		on := hub(scores)
		on.Now = time.Time{}
		matched, _ := matches(t, `managedCluster.scores("default") == []`, cluster.New(cluster1()), on)
		require.Equal(t, want, matched)
	}
}

func TestQuantities(t *testing.T) {
	for quantity, want := range map[string]string{
		"3": "3", "-3": "-3", "+3": "3", "007": "7", "0": "0",
		"3.0": `"3.0"`, "3k": `"3k"`, "1e3": `"1e3"`, "100m": `"100m"`, "": `""`, "many": `"many"`, " 3": `" 3"`,
		"9223372036854775807": "9223372036854775807", "9223372036854775808": `"9223372036854775808"`,
	} {
		scores := score("default", item("x", 1))
		scores.Annotations = map[string]string{cluster.QuantitiesAnnotation: `{"x": "` + quantity + `", "y": "2"}`}
		requireMatch(t, true, `managedCluster.scores("default")[0].quantity == `+want, cluster.New(cluster1()), hub(scores))
	}
	for _, annotation := range []string{"", "[]", "{", `"x"`, `{"x": {}}`} {
		scores := score("default", item("x", 1))
		scores.Annotations = map[string]string{cluster.QuantitiesAnnotation: annotation}
		_, err := matches(t, `managedCluster.scores("default")[0].quantity == 1`, cluster.New(cluster1()), hub(scores))
		require.ErrorContains(t, err, "must be a JSON object of strings", annotation)
	}
}

// Scores are those of the namespace with the name of the cluster, whatever kind
// of object it is.
func TestScoresOfOtherKinds(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "cluster1"}}}
	of, err := cluster.Of(object)
	require.NoError(t, err)
	requireMatch(t, true, `managedCluster.scores("default")[0].value == 3`, of, hub(score("default", item("cpu", 3))))
}

func TestScoresReceiver(t *testing.T) {
	for name, test := range map[string]struct {
		expression   string
		line, column int
		message      string
	}{
		"a literal":          {`true && {"metadata": {"name": "c"}}.scores("s") == []`, 1, 9, "managedCluster only"},
		"a field":            {"true &&\nmanagedCluster.metadata.scores('s') == []", 2, 15, "managedCluster only"},
		"a field of a field": {`managedCluster.metadata.labels.scores("s") == []`, 1, 24, "managedCluster only"},
		"a number":           {`1.scores("s") == []`, 1, 9, "no matching overload"},
		"a text":             {`"cluster1".scores("s") == []`, 1, 18, "no matching overload"},
		"a list":             {`[managedCluster].scores("s") == []`, 1, 24, "no matching overload"},
		"as a function":      {`scores(managedCluster, "s") == []`, 1, 7, "no matching overload"},
		"no name":            {`managedCluster.scores() == []`, 1, 22, "no matching overload"},
		"a number as name":   {`managedCluster.scores(1) == []`, 1, 22, "no matching overload"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := environment.Compile(t.Context(), expressions(test.expression), nil)
			failure := requireError(t, err, cel.ReasonInvalid)
			require.Contains(t, failure.Message, test.message)
			require.Equal(t, []int{test.line, test.column}, []int{failure.Line, failure.Column}, "%v", err)
		})
	}
	// The variable of a macro may be anything.
	_, err := matches(t, `[{"c": {"d": 1}}].all(managedCluster, managedCluster.c.scores("s") == [])`, cluster.New(cluster1()), hub())
	_ = requireError(t, err, cel.ReasonRuntime)
	require.ErrorContains(t, err, "managedCluster only")
}

func TestScoreNames(t *testing.T) {
	for name, test := range map[string]struct {
		expressions []string
		names       []string
		computed    bool
	}{
		"none":               {expressions: []string{`managedCluster.metadata.name == "scores"`}},
		"no CEL":             {},
		"one":                {expressions: []string{`managedCluster.scores("a").size() == 1`}, names: []string{"a"}},
		"several":            {expressions: []string{`managedCluster.scores("a") == managedCluster.scores("b")`, `managedCluster.scores("c") == []`}, names: []string{"a", "b", "c"}},
		"in a macro":         {expressions: []string{`[managedCluster].all(c, c.scores("a") == [])`}, names: []string{"a"}},
		"never evaluated":    {expressions: []string{`true || managedCluster.scores("a") == []`}, names: []string{"a"}},
		"computed":           {expressions: []string{`managedCluster.scores("a" + "b") == []`}, computed: true},
		"computed and known": {expressions: []string{`["a", "b"].all(n, managedCluster.scores(n) == []) && managedCluster.scores("c") == []`}, names: []string{"c"}, computed: true},
	} {
		t.Run(name, func(t *testing.T) {
			names := compile(t, expressions(test.expressions...)).ScoreNames()
			require.ElementsMatch(t, test.names, names.Names.UnsortedList())
			require.Equal(t, test.computed, names.Computed)
			for _, known := range test.names {
				require.True(t, names.Has(known))
			}
			require.Equal(t, test.computed, names.Has("other"))
		})
	}
}
