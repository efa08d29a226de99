// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// TestStayingClustersAreNeverMissing changes a Placement so that its clusters move between PlacementDecisions in every possible
// way. An observer checks that no cluster is missing in between.
func TestStayingClustersAreNeverMissing(t *testing.T) {
	n := cases.Of(400, 2000)
	h := newHub(t, controlplane.Options{})
	const first = 60
	h.join(t, first, first+n)
	object := h.place(t, "moving", clusterv1beta1.PlacementSpec{
		PrioritizerPolicy: exactly(builtIn(placement.ResourceAllocatableCPU, 1)), ScoreRateLimit: "0s",
	})
	h.control(t)
	o := h.observe(t)
	h.requireSettled(t)
	before := o.catchUp(t)
	require.Len(t, before["moving"], n)

	spec := func(mutate func(*clusterv1beta1.PlacementSpec)) func(*testing.T) {
		return func(t *testing.T) {
			require.NoError(t, env.Change(t.Context(), h, object, func(p *clusterv1beta1.Placement) { mutate(&p.Spec) }))
		}
	}
	groups := func(length intstr.IntOrString, clouds ...string) func(*testing.T) {
		return spec(func(s *clusterv1beta1.PlacementSpec) {
			s.DecisionStrategy.GroupStrategy = clusterv1beta1.GroupStrategy{ClustersPerDecisionGroup: length}
			for _, cloud := range clouds {
				s.DecisionStrategy.GroupStrategy.DecisionGroups = append(s.DecisionStrategy.GroupStrategy.DecisionGroups,
					clusterv1beta1.DecisionGroup{GroupName: cloud, ClusterSelector: clusterv1beta1.GroupClusterSelector{
						LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"cloud": cloud}},
					}})
			}
		})
	}
	for _, step := range []struct {
		name string
		act  func(*testing.T)
		want int
	}{
		{"clusters in front", func(t *testing.T) { h.join(t, 0, first) }, n + first},
		{"sorted by score", spec(func(s *clusterv1beta1.PlacementSpec) { s.SortBy = clusterv1beta1.PlacementSortByScore }), n + first},
		{"the other way round", spec(func(s *clusterv1beta1.PlacementSpec) { s.PrioritizerPolicy.Configurations[0].Weight = -1 }), n + first},
		{"short groups", groups(intstr.FromInt32(30)), n + first},
		{"groups by label", groups(intstr.FromString("100%"), "Google", "Azure"), n + first},
		{"groups in another order", groups(intstr.FromString("7%"), "Azure", "Google"), n + first},
		{"fewer", spec(func(s *clusterv1beta1.PlacementSpec) { s.NumberOfClusters = ptr.To(int32(n / 4 * 3)) }), n / 4 * 3},
		{"other ones", spec(func(s *clusterv1beta1.PlacementSpec) { s.PrioritizerPolicy.Configurations[0].Weight = 1 }), n / 4 * 3},
		{"all again, by name", spec(func(s *clusterv1beta1.PlacementSpec) { s.NumberOfClusters, s.SortBy = nil, "ClusterName" }), n + first},
		{"clusters change groups", func(t *testing.T) {
			each(t, n/4, func(ctx context.Context, i int) error { return h.relabel(ctx, nameOf(i*3+1), "cloud", "Google") })
		}, n + first},
		{"one group", groups(intstr.FromString("100%")), n + first},
	} {
		o.expect(before)
		step.act(t)
		h.requireSettled(t)
		after := o.catchUp(t)
		require.Len(t, after["moving"], step.want, step.name)
		o.requireStayed(t, after)
		before = after
	}
}

// exactly returns a prioritizerPolicy with these prioritizers and no others.
func exactly(configurations ...clusterv1beta1.PrioritizerConfig) clusterv1beta1.PrioritizerPolicy {
	return clusterv1beta1.PrioritizerPolicy{Mode: clusterv1beta1.PrioritizerPolicyModeExact, Configurations: configurations}
}

func builtIn(name string, weight int32) clusterv1beta1.PrioritizerConfig {
	return clusterv1beta1.PrioritizerConfig{Weight: weight, ScoreCoordinate: &clusterv1beta1.ScoreCoordinate{
		Type: clusterv1beta1.ScoreCoordinateTypeBuiltIn, BuiltIn: name,
	}}
}

// room returns a prioritizer for the AddOnPlacementScore "room" with the weight.
func room(weight int32) clusterv1beta1.PrioritizerConfig {
	return clusterv1beta1.PrioritizerConfig{Weight: weight, ScoreCoordinate: &clusterv1beta1.ScoreCoordinate{
		Type: clusterv1beta1.ScoreCoordinateTypeAddOn, AddOn: &clusterv1beta1.AddOnScore{ResourceName: "room", ScoreName: "free"},
	}}
}
