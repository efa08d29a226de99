// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/celset/celset/cel/cluster"
)

func item(name string, value int32) clusterv1alpha1.AddOnPlacementScoreItem {
	return clusterv1alpha1.AddOnPlacementScoreItem{Name: name, Value: value}
}

func TestScoresThatAreNoneFail(t *testing.T) {
	_, err := matches(t, `managedCluster.scores("broken").size() == 0`, cluster.New(cluster1()), hub())
	require.ErrorIs(t, err, errBroken)
	_, err = matches(t, `managedCluster.scores("default").size() == 0`, cluster.New(cluster1()), cluster.Hub{})
	require.ErrorContains(t, err, "not found")
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
