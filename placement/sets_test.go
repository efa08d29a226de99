// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/apis/setscores"
)

// TestTotalsLie has 200 clusters with equal numbers of free devices, but only a third of them have complete sets. Selection by
// totals finds few clusters with sets. Selection by set scores finds only clusters with sets, the largest number of sets first,
// until the scores expire.
func TestTotalsLie(t *testing.T) {
	h := newHub(numbered(0, 200)...)
	key := setscores.Key{Class: "gpu.example.com", Constraint: "block8", Devices: 8, State: setscores.Now}.String()
	sets := map[string]int{}
	for i, c := range h.clusters {
		sized(c, "gpu.example.com", "64")
		if i%3 == 1 {
			sets[c.Name] = 1 + i/10
		}
		score := h.score(c.Name, setscores.Name, map[string]int32{key: setscores.Value(sets[c.Name])})
		score.Annotations = map[string]string{setscores.QuantitiesAnnotation: fmt.Sprintf(`{%q: "%d"}`, key, sets[c.Name])}
		score.Status.ValidUntil = &metav1.Time{Time: now.Add(15 * time.Minute)}
	}
	right := func(spec string) (n int, first string) {
		chosen := selected(t, schedule(t, placed(t, "numberOfClusters: 20\n"+spec), h))
		for _, name := range chosen {
			if sets[name] > 0 {
				n++
			}
		}
		require.Len(t, chosen, 20)
		return n, chosen[0]
	}
	totals, _ := right(withExpressions(`quantity(managedCluster.status.allocatable["gpu.example.com"]).isGreaterThan(quantity("8"))`))
	bySets, first := right(withExpressions(`managedCluster.sets("gpu.example.com", "block8", 8).now > 0`) + exactly() + addOn(setscores.Name, key, 1) + "sortBy: Score\n")
	t.Logf("of 20 clusters chosen by totals %d have a set, by sets %d", totals, bySets)
	require.Less(t, totals, 10)
	require.Equal(t, 20, bySets)
	require.Equal(t, "c0190", first)

	// Now the scores of the clusters with the most sets expire.
	for name, n := range sets {
		if n > 5 {
			h.scores[name+"/"+setscores.Name].Status.ValidUntil = &metav1.Time{Time: now.Add(-time.Second)}
		}
	}
	result := schedule(t, placed(t, "numberOfClusters: 20\n"+withExpressions(`managedCluster.sets("gpu.example.com", "block8", 8).now > 0`)), h)
	for _, name := range selected(t, result) {
		require.LessOrEqual(t, sets[name], 5)
	}
}
