// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"testing"

	celtypes "github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// plainScores makes a map of each item, with everything in it.
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

// Items that show fields when these are read are the maps that have all of them.
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
