// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keepMeddling does to PlacementDecisions what others should not, one at a time, until the context ends,
// and returns how often. It never takes a core cluster away.
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

// meddle deletes or changes one of the PlacementDecisions of a Placement, in the version that was read.
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
