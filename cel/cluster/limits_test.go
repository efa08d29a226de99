// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/celset/celset/apis/setscores"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
)

// costOf returns the cost of an expression on cluster1.
func costOf(t *testing.T, expression string, on cluster.Hub) uint64 {
	t.Helper()
	verdict, err := compile(t, expressions(expression)).Match(t.Context(), cluster.New(cluster1()), on)
	require.NoError(t, err)
	require.True(t, verdict.Matches, expression)
	return verdict.Cost
}

// TestCostsOfFunctions checks costs by subtracting the costs of two expressions. scores() costs 10 plus 31 per item.
// parseJSON() costs a tenth of the length of the text, plus 30 per map and 10 per list.
func TestCostsOfFunctions(t *testing.T) {
	items := make([]clusterv1alpha1.AddOnPlacementScoreItem, 7)
	on := hub(score("none"), score("seven", items...))
	scores := func(name string) uint64 {
		return costOf(t, `managedCluster.scores("`+name+`").size() >= 0`, on)
	}
	require.Equal(t, uint64(7*31), scores("seven")-scores("none"))

	// sets() reads all published items, even if only a few have the class and the constraint.
	published := func(items int) uint64 {
		named := score(setscores.Name, slices.Repeat([]clusterv1alpha1.AddOnPlacementScoreItem{item("a/b/8/now", 1)}, items)...)
		named.Annotations = map[string]string{cluster.QuantitiesAnnotation: `{"a/b/8/now": "1"}`}
		return costOf(t, `managedCluster.sets("a", "b", 8).now == 1`, hub(named))
	}
	require.Equal(t, uint64(7*31), published(8)-published(1))

	parse := func(text string) uint64 { return costOf(t, `'`+text+`'.parseJSON() != null`, on) }
	require.Equal(t, uint64(1), parse("1234567890")-parse("[]")+10)
	for text, want := range map[string]uint64{
		`{}        `:           30,
		`[]        `:           10,
		`[[],[]]   `:           30,
		`[{},{}]   `:           70,
		`{"a":[1]} `:           40,
		`{"a":{} } `:           60,
		`{"a":{"b":[{}]}}    `: 30 + 30 + 10 + 30,
	} {
		one := "1" + strings.Repeat(" ", len(text)-1)
		// Comparing a list or a map costs a tenth of its size, rounded up.
		require.InDelta(t, want, parse(text)-parse(one), 1, text)
	}
	require.Equal(t, uint64(100), parse("1"+strings.Repeat(" ", 1009))-parse("1"+strings.Repeat(" ", 9)))
}

// TestCostsOfLibraries tests that library functions have the same cost as in Kubernetes.
func TestCostsOfLibraries(t *testing.T) {
	long := strings.Repeat("1", 1000)
	require.Equal(t, uint64(99), costOf(t, `isQuantity("`+long+`")`, cluster.Hub{})-costOf(t, `isQuantity("1111111111")`, cluster.Hub{}))
}

func TestEstimates(t *testing.T) {
	claims := func(levels int) string {
		condition := "true"
		for level := range levels {
			v := string(rune('a' + level))
			condition = "managedCluster.status.clusterClaims.exists(" + v + ", " + v + ".name == 'x' && " + condition + ")"
		}
		return condition
	}
	for levels := 1; levels <= 3; levels++ {
		_, err := environment.Compile(t.Context(), expressions(claims(levels)), nil)
		require.NoError(t, err)
	}
	// These expressions are expensive only for assumed sizes, so they must compile.
	for _, expensive := range []string{
		claims(4), `"".substring(1) == ""`,
		`managedCluster.status.clusterClaims.exists(c, c.value.split(";").exists(a, a.split(",").exists(b, b.split("=").exists(d, d.matches("[a-z]+-[0-9]+")))))`,
	} {
		selector, err := environment.Compile(t.Context(), expressions(expensive), field.NewPath("s"))
		require.NoError(t, err, expensive)
		warned := environment.Expensive(selector)
		require.Len(t, warned, 1, expensive)
		require.Equal(t, "s.celSelector.celExpressions[0]", warned[0].Path.String())
		require.ErrorContains(t, warned[0], "an evaluation may cost ")
		require.ErrorContains(t, warned[0], "by estimate, and fails on a cluster where it costs more than 1000000: nest fewer macros")
	}
	for _, cheap := range []string{
		claims(3), `managedCluster.scores("r").exists(s, s.name == "x" && s.value > 1)`,
		`managedCluster.sets("a", "b", 8).now > 1 && managedCluster.sets("a", "b", 4).?packed.orValue(0) > 1`,
		`managedCluster.status.clusterClaims.exists(c, c.value.parseJSON().a == 1)`, `parseJSON(managedCluster.metadata.name) == null`,
		`parseJSON('{"a": 1}').a == 1 && managedCluster.metadata.creationTimestamp > timestamp("2026-01-01T00:00:00Z")`,
		`quantity(managedCluster.status.allocatable.memory).isGreaterThan(quantity("1Gi"))`,
	} {
		selector, err := environment.Compile(t.Context(), expressions(cheap), nil)
		require.NoError(t, err, cheap)
		require.Empty(t, environment.Expensive(selector), cheap)
	}

	cheap, err := cluster.NewEnvironment(cel.Config{CostLimit: 100})
	require.NoError(t, err)
	selector, err := cheap.Compile(t.Context(), expressions(claims(1), `managedCluster.status.version.kubernetes == "v1.30.0"`), nil)
	require.NoError(t, err)
	require.Len(t, cheap.Expensive(selector), 1)
}

// named returns cluster1 with a name of the given length instead.
func named(length int) cluster.Cluster {
	object := cluster1()
	object.Name = strings.Repeat("a", length)
	return cluster.New(object)
}

// TestCostLimits tests that evaluations end at the limits, even if the estimate was lower. Matching a pattern costs a tenth of
// the text's length, times a quarter of the pattern's length.
func TestCostLimits(t *testing.T) {
	match := `!managedCluster.metadata.name.matches("` + strings.Repeat("b", 4000) + `")`
	four := strings.Join(slices.Repeat([]string{match}, 4), " && ")
	verdict, err := compile(t, expressions(four)).Match(t.Context(), named(4000), cluster.Hub{})
	require.False(t, verdict.Matches)
	require.Greater(t, verdict.Cost, cel.DefaultCostLimit)
	_ = requireError(t, err, cel.ReasonCostLimit)
	require.ErrorContains(t, err, "exceeds the cost limit of 1000000")
	require.ErrorContains(t, err, "nest fewer macros")

	// Each expression stays below its own limit, but all expressions together exceed the budget of the cluster.
	selector := compile(t, expressions(slices.Repeat([]string{four}, 13)...))
	verdict, err = selector.Match(t.Context(), named(2000), cluster.Hub{})
	_ = requireError(t, err, cel.ReasonBudget)
	require.Greater(t, verdict.Cost, uint64(cluster.ClusterCostLimit))
	require.ErrorContains(t, err, "exceed the cost budget of 10000000: write fewer or cheaper expressions")

	// Each cluster has its own budget.
	for range 2 {
		verdict, err = selector.Match(t.Context(), named(1000), cluster.Hub{})
		require.NoError(t, err)
		require.True(t, verdict.Matches)
	}
}

// TestLargeExpressionsDoNotCompile has expressions that Open Cluster Management accepts, but this package rejects.
func TestLargeExpressionsDoNotCompile(t *testing.T) {
	for text, message := range map[string]string{
		strings.Repeat("1 < 2 || ", 2000) + "true":                                                      "more than 6000 parts after its macros are expanded",
		strings.Repeat("[1].all(x, ", 60) + "true" + strings.Repeat(")", 60):                            "nested more than 100 levels deep",
		strings.Repeat("[", 40) + strings.Repeat("]", 40) + " == []":                                    "a type has more than 32 names",
		"managedCluster.metadata.name.matches('(abcdefghijklmnopqrstuvwxyz){1000}')":                    "more than 20000 instructions",
		"managedCluster.metadata.name.matches(r'" + strings.Repeat(`\pL`, 100) + "')":                   "names 100 classes of characters, the limit is 64: use fewer classes",
		"managedCluster.metadata.name.findAll('" + strings.Repeat("(a|b)*", 40) + "') == []":            "has 40 groups, the limit is 32: write (?:x) instead of (x)",
		"managedCluster.metadata.name.find('" + strings.Repeat("a", 17_000) + "') == ''":                "the regular expression has 17000 bytes, the limit is 16384: shorten it",
		strings.Repeat("managedCluster.metadata.name == 'a' || ", 2000) + "managedCluster.spec == null": "more than 10240 words and symbols",
		"managedCluster.metadata.name == '" + strings.Repeat("é", 11_000) + "'":                         "11000 characters that are not ASCII, the limit is 10240",
	} {
		_, err := environment.Compile(t.Context(), expressions(text), nil)
		require.Error(t, err, message)
		_ = requireError(t, err, cel.ReasonTooLong)
		require.ErrorContains(t, err, message)
	}
}

// TestManyPublishedSets tests that an evaluation over many published sets returns a result or ends at a limit.
func TestManyPublishedSets(t *testing.T) {
	for _, test := range []struct {
		calls, items int
		reason       cel.Reason
	}{{1, 1000, ""}, {30, 1000, ""}, {40, 1000, cel.ReasonCostLimit}, {1, 10_000, cel.ReasonMemory}} {
		named, quantities := score(setscores.Name), map[string]string{}
		for i := range test.items {
			name := setscores.Key{Class: fmt.Sprintf("class-%d", i), Constraint: "b", Devices: 8, State: setscores.Now}.String()
			named.Status.Scores = append(named.Status.Scores, item(name, 1))
			quantities[name] = "1"
		}
		text, err := json.Marshal(quantities)
		require.NoError(t, err)
		named.Annotations = map[string]string{cluster.QuantitiesAnnotation: string(text)}
		last := fmt.Sprintf(`managedCluster.sets("class-%d", "b", 8).now == 1`, test.items-1)
		all := strings.Join(slices.Repeat([]string{last}, test.calls), " && ")
		verdict, err := compile(t, expressions(all)).Match(t.Context(), cluster.New(cluster1()), hub(named))
		if test.reason == "" {
			require.NoError(t, err)
			require.True(t, verdict.Matches)
		} else {
			_ = requireError(t, err, test.reason)
		}
	}
}

// TestMemoryLimit tests that the memory limit is independent of the cost.
func TestMemoryLimit(t *testing.T) {
	const text = `managedCluster.metadata.name.replace("", managedCluster.metadata.name).size() < 0`
	verdict, err := compile(t, expressions(text)).Match(t.Context(), named(4000), cluster.Hub{})
	require.False(t, verdict.Matches)
	_ = requireError(t, err, cel.ReasonMemory)
	require.ErrorContains(t, err, "exceeds the memory limit of 2097152 bytes with this call of replace")
	verdict, err = compile(t, expressions(text)).Match(t.Context(), named(100), cluster.Hub{})
	require.NoError(t, err)
	require.False(t, verdict.Matches)
}
