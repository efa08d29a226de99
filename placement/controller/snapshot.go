// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/placement"
)

// Cache returns the options of a manager's cache. What is only read is handed out
// without a copy: nothing in the manager may modify objects of these kinds that come
// from the cache. Managed fields are left out, but for those of clusters, which expressions may read.
func Cache() cache.Options {
	shared := cache.ByObject{UnsafeDisableDeepCopy: ptr.To(true), Transform: cache.TransformStripManagedFields()}
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&clusterv1.ManagedCluster{}:                {UnsafeDisableDeepCopy: ptr.To(true)},
		&clusterv1beta2.ManagedClusterSet{}:        shared,
		&clusterv1beta2.ManagedClusterSetBinding{}: shared,
		&clusterv1alpha1.AddOnPlacementScore{}:     shared,
		&clusterv1beta1.PlacementDecision{}:        shared,
	}}
}

// snapshot is the hub as the cache has it, and the decisions as the ledger has them.
func (r *reconciler) snapshot(ctx context.Context, namespace string) (*placement.Snapshot, error) {
	clusters, err := r.clusters.get(ctx)
	if err != nil {
		return nil, err
	}
	scores, err := r.scores.get(ctx)
	if err != nil {
		return nil, err
	}
	return snapshotOf(ctx, r.client, namespace, clusters, scores, r.ledger.decisions)
}

func snapshotOf(ctx context.Context, reader client.Reader, namespace string, clusters []*clusterv1.ManagedCluster, scores *scores, decisions *placement.Decisions) (*placement.Snapshot, error) {
	var (
		sets     clusterv1beta2.ManagedClusterSetList
		bindings clusterv1beta2.ManagedClusterSetBindingList
	)
	if err := reader.List(ctx, &sets, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ManagedClusterSets: %w", err)
	}
	if err := reader.List(ctx, &bindings, client.UnsafeDisableDeepCopy, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list ManagedClusterSetBindings in namespace %s: %w", namespace, err)
	}
	return &placement.Snapshot{
		Clusters:    clusters,
		ClusterSets: pointers(sets.Items),
		Bindings:    pointers(bindings.Items),
		Scores:      scores,
		Decisions:   decisions,
	}, nil
}

// decisionsOf lists the PlacementDecisions that have the label of a Placement, sorted by
// name, and returns the version of the list, too.
func decisionsOf(ctx context.Context, reader client.Reader, key types.NamespacedName) (decisions []*clusterv1beta1.PlacementDecision, version string, err error) {
	var list clusterv1beta1.PlacementDecisionList
	if err := reader.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingLabels{clusterv1beta1.PlacementLabel: key.Name}); err != nil {
		return nil, "", fmt.Errorf("list PlacementDecisions of Placement %s: %w", key, err)
	}
	decisions = pointers(list.Items)
	slices.SortFunc(decisions, func(a, b *clusterv1beta1.PlacementDecision) int { return strings.Compare(a.Name, b.Name) })
	return decisions, list.ResourceVersion, nil
}

func pointers[T any](items []T) []*T {
	result := make([]*T, len(items))
	for i := range items {
		result[i] = &items[i]
	}
	return result
}
