// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
)

type requirement = metav1.LabelSelectorRequirement

func byLabels(requirements ...requirement) clusterv1beta1.ClusterSelector {
	return clusterv1beta1.ClusterSelector{LabelSelector: metav1.LabelSelector{MatchExpressions: requirements}}
}

func byClaims(requirements ...requirement) clusterv1beta1.ClusterSelector {
	return clusterv1beta1.ClusterSelector{ClaimSelector: clusterv1beta1.ClusterClaimSelector{MatchExpressions: requirements}}
}

// TestLongExpressions tests that an expression beyond a limit of CEL's parser causes an error and no panic.
func TestLongExpressions(t *testing.T) {
	for name, test := range map[string]struct {
		expression string
		message    string
	}{
		"longer than for devices": {expression: strings.Repeat("true && ", 2000) + "true"},
		"characters of two bytes": {expression: "'" + strings.Repeat("ä", 10_000) + strings.Repeat("a", 89_000) + "' != ''"},
		"too long":                {"'" + strings.Repeat("ä", 10_000) + strings.Repeat("a", 90_000) + "' != ''", "expression code point size exceeds limit"},
		"too many of them":        {"'" + strings.Repeat("ä", 99_000) + "' != ''", "99000 characters that are not ASCII, the limit is 10240"},
		"much too long":           {strings.Repeat(" ", 400_001), "the expression has 400001 bytes, the limit is 400000: split it into several"},
		"parentheses":             {strings.Repeat("(", 2_000) + "true" + strings.Repeat(")", 2_000), "recursion limit exceeded"},
		"calls":                   {"'a'" + strings.Repeat(".trim()", 1_000) + " == 'a'", "recursion depth exceeded"},
		"fields":                  {"managedCluster" + strings.Repeat(".a", 2_000) + " == 1", "recursion depth exceeded"},
		"too many words":          {strings.Repeat("(", 40_000) + "true" + strings.Repeat(")", 40_000), "more than 10240 words and symbols"},
	} {
		t.Run(name, func(t *testing.T) {
			selector, err := environment.Compile(t.Context(), expressions(test.expression), nil)
			if test.message != "" {
				require.ErrorContains(t, err, test.message)
				return
			}
			require.NoError(t, err)
			verdict, err := selector.Match(t.Context(), cluster.New(cluster1()), cluster.Hub{})
			require.NoError(t, err)
			require.True(t, verdict.Matches)
		})
	}
}

func TestCompileErrorsAreJoined(t *testing.T) {
	selector := byLabels(requirement{Key: "a", Operator: "Gt"})
	selector.CelSelector = expressions("first", "true", "second").CelSelector
	_, err := environment.Compile(t.Context(), selector, nil)
	for _, message := range []string{"labelSelector: ", "celSelector.celExpressions[0]: ", "'first'", "celSelector.celExpressions[2]: ", "'second'", " | ^"} {
		require.ErrorContains(t, err, message)
	}
	var part *cluster.Error
	require.ErrorAs(t, err, &part)
	require.Equal(t, "labelSelector", part.Path.String())
	require.NotContains(t, err.Error(), "celExpressions[1]")
}

func TestRuntimeErrors(t *testing.T) {
	selector := compile(t, expressions("true", "true &&\nmanagedCluster.status.nothing == 1", "false"))
	verdict, err := selector.Match(t.Context(), cluster.New(cluster1()), cluster.Hub{})
	require.False(t, verdict.Matches)
	require.NotZero(t, verdict.Cost)
	failure := requireError(t, err, cel.ReasonRuntime)
	require.Equal(t, []int{2, 22}, []int{failure.Line, failure.Column})
	require.ErrorContains(t, err, "celSelector.celExpressions[1]: cluster cluster1: ERROR: <input>:2:22: no such key: nothing")
	require.ErrorContains(t, err, " | managedCluster.status.nothing == 1\n | .....................^")

	_, err = matches(t, "managedCluster.spec.leaseDurationSeconds", cluster.New(cluster1()), cluster.Hub{})
	_ = requireError(t, err, cel.ReasonType)
	require.ErrorContains(t, err, "the expression must return bool, but returned int")
	requireMatch(t, true, "managedCluster.spec.hubAcceptsClient", cluster.New(cluster1()), cluster.Hub{})
}

func TestInterruption(t *testing.T) {
	object := cluster1()
	for range 12 {
		object.Status.ClusterClaims = append(object.Status.ClusterClaims, object.Status.ClusterClaims...)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	selector := compile(t, expressions("managedCluster.status.clusterClaims.all(c, c.name != '')"))
	_, err := selector.Match(ctx, cluster.New(object), cluster.Hub{})
	_ = requireError(t, err, cel.ReasonInterrupted)
	require.ErrorIs(t, err, context.Canceled)
}

func TestNoCluster(t *testing.T) {
	for name, of := range map[string]metav1.Object{
		"nil": nil, "nil cluster": (*clusterv1.ManagedCluster)(nil), "nil object": (*unstructured.Unstructured)(nil), "nil metadata": (*metav1.ObjectMeta)(nil),
	} {
		_, err := cluster.Of(of)
		require.ErrorContains(t, err, "must be a pointer to an object that is not nil", name)
	}
	for _, of := range []cluster.Cluster{{}, cluster.New(nil)} {
		verdict, err := compile(t, clusterv1beta1.ClusterSelector{}).Match(t.Context(), of, cluster.Hub{})
		require.ErrorContains(t, err, "there is no cluster")
		require.False(t, verdict.Matches)
	}
}

// TestMalformedObjects tests unstructured objects whose fields have any type.
func TestMalformedObjects(t *testing.T) {
	for _, content := range []map[string]any{
		nil,
		{"metadata": "text", "status": "text"},
		{"metadata": map[string]any{"labels": []any{"cloud"}}, "status": map[string]any{"clusterClaims": map[string]any{"name": "a"}}},
		{"metadata": map[string]any{"labels": map[string]any{"cloud": int64(1)}}, "status": map[string]any{"clusterClaims": []any{"a", nil, map[string]any{"name": int64(1)}}}},
		{"metadata": map[string]any{"labels": nil}, "status": map[string]any{"properties": nil}},
	} {
		of, err := cluster.Of(&unstructured.Unstructured{Object: content})
		require.NoError(t, err)
		for _, selector := range []clusterv1beta1.ClusterSelector{
			byLabels(requirement{Key: "cloud", Operator: "Exists"}),
			byClaims(requirement{Key: "a", Operator: "Exists"}),
			expressions("has(managedCluster.nothing)"),
		} {
			verdict, err := compile(t, selector).Match(t.Context(), of, cluster.Hub{})
			require.NoError(t, err)
			require.False(t, verdict.Matches)
		}
	}
}

func TestForLabels(t *testing.T) {
	for text, want := range map[string]bool{"": true, "cloud=aws": true, "cloud!=aws": false, "cloud in (gcp),env": false, "!rack": true} {
		parsed, err := labels.Parse(text)
		require.NoError(t, err)
		verdict, err := cluster.ForLabels(parsed).Match(t.Context(), cluster.New(cluster1()), cluster.Hub{})
		require.NoError(t, err)
		require.Equal(t, want, verdict.Matches, text)
	}
	verdict, err := cluster.ForLabels(labels.Nothing()).Match(t.Context(), cluster.New(cluster1()), cluster.Hub{})
	require.NoError(t, err)
	require.False(t, verdict.Matches)
	require.False(t, cluster.ForLabels(nil).ScoreNames().Has("a"))
}

// TestNothingIsAllocatedWithoutCEL tests that matching without CEL allocates nothing.
func TestNothingIsAllocatedWithoutCEL(t *testing.T) {
	selector := byLabels(requirement{Key: "cloud", Operator: "Exists"})
	selector.ClaimSelector = byClaims(requirement{Key: "id.k8s.io", Operator: "Exists"}).ClaimSelector
	compiled, of := compile(t, selector), cluster.New(cluster1())
	require.Zero(t, testing.AllocsPerRun(100, func() {
		verdict, err := compiled.Match(context.Background(), of, cluster.Hub{})
		require.True(t, verdict.Matches && err == nil)
	}))
}

// TestAllocationsDoNotGrowWithTheCluster tests that reading one field does not convert other fields.
func TestAllocationsDoNotGrowWithTheCluster(t *testing.T) {
	selector := compile(t, expressions(`managedCluster.status.version.kubernetes == "v1.30.0"`))
	allocations := func(object *clusterv1.ManagedCluster) float64 {
		of := cluster.New(object)
		return testing.AllocsPerRun(100, func() {
			_, err := selector.Match(context.Background(), of, cluster.Hub{})
			require.NoError(t, err)
		})
	}
	require.Equal(t, allocations(cluster1()), allocations(generated(1)))
}

// TestConcurrentUse shares selectors and clusters between goroutines. Run it with the race detector.
func TestConcurrentUse(t *testing.T) {
	object := generated(1)
	of, scores := cluster.New(object), score("default", item("cpu", 3))
	scores.Namespace = object.Name
	object.Status.Capacity["huge"] = resource.MustParse("1000000000000000000001")
	on := hub(scores)
	selectors := map[*cluster.Selector]bool{
		compile(t, byLabels(requirement{Key: "cloud", Operator: "Exists"})):                                         true,
		compile(t, byClaims(requirement{Key: "nothing", Operator: "Exists"})):                                       false,
		compile(t, expressions(`managedCluster.status.capacity.cpu != ""`)):                                         true,
		compile(t, expressions(`managedCluster.metadata.managedFields.all(f, f.fieldsV1.size() == 2)`)):             true,
		compile(t, expressions(`quantity(managedCluster.status.capacity.memory).isLessThan(quantity("1k"))`)):       false,
		compile(t, expressions(`managedCluster == managedCluster && managedCluster.status.conditions.size() == 3`)): true,
		compile(t, expressions(`managedCluster.scores("default")[0].value == 3`)):                                   true,
		compile(t, expressions(`quantity(managedCluster.status.capacity.huge).isGreaterThan(quantity("1k"))`)):      true,
		compile(t, expressions(`managedCluster.nothing == 1`)):                                                      false,
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				for selector, want := range selectors {
					if verdict, err := selector.Match(context.Background(), of, on); verdict.Matches != want {
						t.Errorf("got %v, want %v: %v", verdict.Matches, want, err)
					}
				}
			}
		})
	}
	group.Wait()
}

func TestVerdictsSayWhatDoesNotMatch(t *testing.T) {
	selector := byLabels(requirement{Key: "cloud", Operator: "In", Values: []string{"aws"}})
	selector.ClaimSelector = byClaims(requirement{Key: "region.open-cluster-management.io", Operator: "Exists"}).ClaimSelector
	selector.CelSelector = expressions("true", `managedCluster.spec.leaseDurationSeconds == 60`).CelSelector
	compiled, err := environment.Compile(t.Context(), selector, field.NewPath("spec"))
	require.NoError(t, err)
	for want, change := range map[string]func(*clusterv1.ManagedCluster){
		"<nil>":                              func(*clusterv1.ManagedCluster) {},
		"spec.labelSelector":                 func(c *clusterv1.ManagedCluster) { c.Labels = nil },
		"spec.claimSelector":                 func(c *clusterv1.ManagedCluster) { c.Status.ClusterClaims = nil },
		"spec.celSelector.celExpressions[1]": func(c *clusterv1.ManagedCluster) { c.Spec.LeaseDurationSeconds = 1 },
	} {
		object := cluster1()
		change(object)
		verdict, err := compiled.Match(t.Context(), cluster.New(object), cluster.Hub{})
		require.NoError(t, err)
		require.Equal(t, want, verdict.Unmatched.String())
		require.Equal(t, want == "<nil>", verdict.Matches)
	}
}

// TestOrderOfMaps tests that iterations over maps follow the order of keys, so that the result is always the same.
func TestOrderOfMaps(t *testing.T) {
	for range 20 {
		requireMatch(t, true, `managedCluster.metadata.labels.map(k, k) == ["cloud", "env", "version"] &&
			managedCluster.status.capacity.map(k, k) == ["cpu", "memory"] && managedCluster.map(k, k) == ["metadata", "spec", "status"] &&
			'{"c": 1, "a": 2, "b": 3}'.parseJSON().map(k, k) == ["a", "b", "c"]`, cluster.New(cluster1()), cluster.Hub{})
	}
}
