// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/placement"
	"github.com/celset/celset/test/internal/env"
)

// core is a label. Every Placement selects the clusters with this label, before and after each change.
const core = "core"

// keepChanging changes a random Placement or cluster every few milliseconds until the context ends.
func (h *hub) keepChanging(ctx context.Context, random *rand.Rand, placements []*clusterv1beta1.Placement, clusters int) error {
	for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		var err error
		if random.IntN(3) == 0 {
			err = h.relabel(ctx, nameOf(random.IntN(clusters)), "cloud", []string{"Amazon", "Azure", "Google"}[random.IntN(3)])
		} else {
			object := placements[random.IntN(len(placements))]
			wanted := anySpec(random)
			err = env.Change(ctx, h, object, func(p *clusterv1beta1.Placement) { p.Spec = wanted })
		}
		if ctx.Err() == nil && client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// anySpec returns a random spec. It selects at least the clusters with the label core, and its result does not depend on
// earlier decisions.
func anySpec(random *rand.Rand) clusterv1beta1.PlacementSpec {
	spec := clusterv1beta1.PlacementSpec{
		PrioritizerPolicy: exactly(builtIn(placement.ResourceAllocatableCPU, int32(random.IntN(5)-2)), room(int32(random.IntN(5)-2))),
		SortBy:            []clusterv1beta1.PlacementSortByType{clusterv1beta1.PlacementSortByClusterName, clusterv1beta1.PlacementSortByScore}[random.IntN(2)],
		ScoreRateLimit:    "0s",
	}
	cloud := []string{"Amazon", "Azure", "Google"}[random.IntN(3)]
	selector := []clusterv1beta1.ClusterSelector{
		{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"cloud": cloud}}},
		{ClaimSelector: clusterv1beta1.ClusterClaimSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "kubeversion.open-cluster-management.io", Operator: metav1.LabelSelectorOpIn, Values: []string{"1.29.0", "1.30.1", "1.31.2"}},
		}}},
		expression(`managedCluster.metadata.labels["cloud"] == %q || managedCluster.scores("room").exists(s, s.value > %d)`, cloud, random.IntN(100)),
		{},
	}[random.IntN(4)]
	spec.Predicates = []clusterv1beta1.ClusterPredicate{
		{RequiredClusterSelector: clusterv1beta1.ClusterSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{core: "yes"}}}},
		{RequiredClusterSelector: selector},
	}
	spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = []intstr.IntOrString{
		intstr.FromString("100%"), intstr.FromInt32(30), intstr.FromString("20%"),
	}[random.IntN(3)]
	if random.IntN(2) == 0 {
		spec.DecisionStrategy.GroupStrategy.DecisionGroups = []clusterv1beta1.DecisionGroup{{GroupName: cloud, ClusterSelector: clusterv1beta1.GroupClusterSelector{
			LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"cloud": cloud}},
		}}}
	}
	if random.IntN(4) == 0 {
		// Select all clusters, so that no core cluster is left out.
		spec.NumberOfClusters = ptr.To[int32](1000)
	}
	return spec
}

// keepMeddling acts as another program that writes PlacementDecisions: it changes a random one at a time until the context
// ends. It never removes a core cluster. It returns the number of its changes.
func (h *hub) keepMeddling(ctx context.Context, random *rand.Rand, placements []*clusterv1beta1.Placement) (done int, err error) {
	for ; ctx.Err() == nil; sleep(ctx, 200*time.Millisecond) {
		err := h.meddle(ctx, random, placements[random.IntN(len(placements))].Name, placements[random.IntN(len(placements))].Name)
		switch {
		case ctx.Err() != nil, apierrors.IsConflict(err), apierrors.IsNotFound(err):
		case err != nil:
			return done, err
		default:
			done++
		}
	}
	return done, nil
}

// meddle deletes or changes a random PlacementDecision of the Placement. The write fails if the object has changed since meddle
// read it.
func (h *hub) meddle(ctx context.Context, random *rand.Rand, placement, another string) error {
	var list clusterv1beta1.PlacementDecisionList
	if err := h.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{clusterv1beta1.PlacementLabel: placement}); err != nil || len(list.Items) == 0 {
		return err
	}
	var cores clusterv1.ManagedClusterList
	if err := h.List(ctx, &cores, client.MatchingLabels{core: "yes"}); err != nil {
		return err
	}
	isCore := map[string]bool{}
	for _, cluster := range cores.Items {
		isCore[cluster.Name] = true
	}
	object := &list.Items[random.IntN(len(list.Items))]
	var others []clusterv1beta1.ClusterDecision
	for _, decision := range object.Status.Decisions {
		if !isCore[decision.ClusterName] {
			others = append(others, decision)
		}
	}
	before := object.DeepCopy()
	locked := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	ways := []func() error{
		func() error {
			object.Status.Decisions = append(object.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: "stranger", Reason: "he says so"})
			return h.Status().Patch(ctx, object, locked)
		},
		func() error {
			for i := range object.Status.Decisions {
				object.Status.Decisions[i].Reason = "somebody says so"
			}
			return h.Status().Patch(ctx, object, locked)
		},
		func() error {
			object.Labels[clusterv1beta1.DecisionGroupIndexLabel] = "7"
			return h.Patch(ctx, object, locked)
		},
	}
	if len(others) == len(object.Status.Decisions) {
		ways = append(ways,
			func() error {
				return h.Delete(ctx, object, client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion})
			},
			func() error {
				delete(object.Labels, clusterv1beta1.PlacementLabel)
				return h.Patch(ctx, object, locked)
			},
			func() error {
				object.Labels[clusterv1beta1.PlacementLabel] = another
				return h.Patch(ctx, object, locked)
			})
	}
	return ways[random.IntN(len(ways))]()
}
