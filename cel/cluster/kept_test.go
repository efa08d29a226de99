// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	celtypes "github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// drawJSON draws a value that a JSON text can have.
func drawJSON(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 7).Draw(t, "kind")
	if depth == 0 {
		kind = min(kind, 5)
	}
	switch kind {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.Int64().Draw(t, "int")
	case 3:
		return rapid.Float64().Draw(t, "float")
	case 4, 5:
		return rapid.SampledFrom([]string{"", "a", "1.30.4", "ä\u2028\"\\", "[1]"}).Draw(t, "text")
	case 6:
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "length"))
		for i := range list {
			list[i] = drawJSON(t, depth-1)
		}
		return list
	default:
		object := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "fields") {
			object[rapid.SampledFrom([]string{"a", "b", "c", "H100"}).Draw(t, "key")] = drawJSON(t, depth-1)
		}
		return object
	}
}

// plainParse parses without the cache. It returns the value that parseJSON should return, and the cost of the call.
func plainParse(text string) (ref.Val, uint64) {
	var value any
	if err := utiljson.Unmarshal([]byte(text), &value); err != nil {
		return celtypes.NewErr("parseJSON: the text is not JSON: %v", err), traversal(uint64(len([]rune(text))))
	}
	return untypedValue(value), traversal(uint64(len([]rune(text)))) + containers(value)
}

// TestCachedTextsHaveEqualResults tests that parseJSON has the same values, errors and costs for cached and for new texts.
func TestCachedTextsHaveEqualResults(t *testing.T) {
	seen := map[string]int{}
	c := newCosts()
	check := func(t *rapid.T) {
		data, err := json.Marshal(drawJSON(t, 3))
		require.NoError(t, err)
		text := string(data)
		if rapid.IntRange(0, 4).Draw(t, "spoilt") == 0 {
			text = text[:rapid.IntRange(0, len(text)).Draw(t, "end")]
		}
		parsedMemory.Forget()
		want, wantCost := plainParse(text)
		for _, state := range []string{"new", "kept"} {
			got := parseJSON(celtypes.String(text))
			require.Equal(t, wantCost, *c.CallCost(parseJSONFunction, "", []ref.Val{celtypes.String(text)}, got), text)
			if failure, isError := want.(*celtypes.Err); isError {
				require.EqualError(t, got.(*celtypes.Err), failure.Error())
				require.NotSame(t, failure, got, "an error gets a place")
				seen["failed "+state]++
				continue
			}
			require.Equal(t, want.Type(), got.Type())
			require.Equal(t, celtypes.True, celtypes.Equal(want, got), text)
			require.Equal(t, celtypes.True, celtypes.Equal(got, want), text)
			seen[state]++
		}
		text, ordered := drawExpression(t)
		text = strings.NewReplacer("managedCluster.metadata.name", `'{"a":[1],"b":{"a":"a"}}'.parseJSON()`, "managedCluster.status.version.kubernetes", `'{"name":"a","value":"b"}'.parseJSON()`).Replace(text)
		program, err := testEnvironment.core.Compile(t.Context(), text)
		if err != nil {
			return
		}
		selector := &Selector{expressions: []expression{{program: program}}}
		object := managedClusters.Draw(t, "cluster")
		parsedMemory.Forget()
		first, firstErr := selector.Match(t.Context(), New(object), Hub{})
		again, againErr := selector.Match(t.Context(), New(object), Hub{})
		require.Equal(t, fmt.Sprint(firstErr), fmt.Sprint(againErr), text)
		require.Equal(t, first.Matches, again.Matches, text)
		if ordered {
			require.Equal(t, first.Cost, again.Cost, text)
		}
	}
	cases.Until(t, cases.Of(50, 1000), func() bool { return len(seen) == 4 }, check)
	require.Positive(t, seen["new"])
	require.Positive(t, seen["kept"])
	require.Positive(t, seen["failed kept"])
}

// TestCachedTextsAreBounded tests that concurrent callers don't make the cache exceed its limit.
func TestCachedTextsAreBounded(t *testing.T) {
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			for j := range 100 {
				text := fmt.Sprintf(`{"a": %q, "b": [%d]}`, strings.Repeat("x", 50_000), j)
				got := parseJSON(celtypes.String(text)).(*mapping[parsedObject])
				b, _ := got.Find(celtypes.String("b"))
				if celtypes.Equal(b, celtypes.DefaultTypeAdapter.NativeToValue([]int{j})) != celtypes.True {
					t.Error(i, j, b)
				}
			}
		})
	}
	wait.Wait()
	require.Positive(t, parsedMemory.Used())
	require.LessOrEqual(t, parsedMemory.Used(), int64(parsedBytes))
	parseJSON(celtypes.String(`"` + strings.Repeat("y", parsedBytes) + `"`))
	require.LessOrEqual(t, parsedMemory.Used(), int64(parsedBytes), "a text that is larger than all that may be kept")
}

// plainScores returns the scores as CEL maps that are built in advance.
func plainScores(object *clusterv1alpha1.AddOnPlacementScore) ref.Val {
	quantities, err := quantitiesOf(object)
	items := make([]ref.Val, len(object.Status.Scores))
	for i := range object.Status.Scores {
		score := &object.Status.Scores[i]
		quantity := celtypes.WrapErr(err)
		if err == nil {
			quantity = quantityOf(score, quantities)
		}
		items[i] = celtypes.NewRefValMap(celtypes.DefaultTypeAdapter, map[ref.Val]ref.Val{
			celtypes.String("name"):     celtypes.String(score.Name),
			celtypes.String("value"):    celtypes.Int(score.Value),
			celtypes.String("quantity"): quantity,
		})
	}
	return celtypes.NewRefValList(celtypes.DefaultTypeAdapter, items)
}

// TestScoresAreMaps tests that scores with lazily converted fields equal maps that are built in advance.
func TestScoresAreMaps(t *testing.T) {
	seen := map[string]int{}
	c := newCosts()
	check := func(t *rapid.T) {
		object := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "c"}}
		for range rapid.IntRange(0, 4).Draw(t, "items") {
			object.Status.Scores = append(object.Status.Scores, clusterv1alpha1.AddOnPlacementScoreItem{
				Name: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "name"), Value: rapid.Int32().Draw(t, "value"),
			})
		}
		if annotation := rapid.SampledFrom([]string{"", `{}`, `{"a": "4", "b": "100Mi"}`, `{"c": "99999999999999999999"}`, `{"a": 4}`, `[`}).Draw(t, "annotation"); annotation != "" {
			object.Annotations = map[string]string{QuantitiesAnnotation: annotation}
		}
		want, got := plainScores(object).(traits.Lister), scoreItems(object).(traits.Lister)
		require.Equal(t, want.Size(), got.Size())
		require.Equal(t, *c.CallCost(scoresFunction, "", nil, want), *c.CallCost(scoresFunction, "", nil, got))
		for i := range int(want.Size().(celtypes.Int)) {
			one, other := want.Get(celtypes.Int(i)).(traits.Mapper), got.Get(celtypes.Int(i)).(traits.Mapper)
			require.Equal(t, one.Type(), other.Type())
			require.Equal(t, one.Size(), other.Size())
			failed := false
			for _, key := range []ref.Val{celtypes.String("name"), celtypes.String("value"), celtypes.String("quantity"), celtypes.String("x"), celtypes.Int(1), celtypes.True} {
				expected, found := one.Find(key)
				is, isFound := other.Find(key)
				require.Equal(t, found, isFound, "%v", key)
				require.Equal(t, one.Contains(key), other.Contains(key), "%v", key)
				require.Equal(t, fmt.Sprint(expected), fmt.Sprint(is), "%v", key)
				failed = failed || celtypes.IsError(expected)
				require.Equal(t, fmt.Sprint(one.Get(key)), fmt.Sprint(other.Get(key)), "%v", key)
			}
			if failed {
				seen["failed"]++
				continue
			}
			require.Equal(t, celtypes.True, celtypes.Equal(one, other))
			require.Equal(t, celtypes.True, celtypes.Equal(other, one))
			seen["equal"]++
		}
	}
	cases.Until(t, cases.Of(50, 1000), func() bool { return len(seen) == 2 }, check)
	require.Positive(t, seen["failed"])
	require.Positive(t, seen["equal"])
}
