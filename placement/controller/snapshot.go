// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

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

// Cache returns the options for a manager's cache. Objects of these kinds are shared without a copy, so nothing in the process
// may modify them. Managed fields are removed, except for clusters, because expressions may read the managed fields of
// clusters.
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

// snapshot returns the objects that a decision for a Placement in the namespace depends on. They come from the cache and the
// ledger.
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

// decisionsOf lists the PlacementDecisions with the label of a Placement. It returns them sorted by name, with the version of
// the list.
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

// collected caches a value that is computed from all objects of a kind. A change of a cluster affects all Placements that may
// select it, and these Placements share one value.
type collected[T any] struct {
	collect func(context.Context) (T, error)

	changes atomic.Uint64

	mutex sync.Mutex
	// at is the number of changes before value was computed.
	at    uint64
	isSet bool
	value T
}

// changed marks the value as outdated. It must be called after the cache has changed and before the affected Placements are
// queued.
func (c *collected[T]) changed() { c.changes.Add(1) }

// get returns the value, and computes it if it is outdated. The caller must not modify it.
func (c *collected[T]) get(ctx context.Context) (T, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	at := c.changes.Load()
	if c.isSet && c.at == at {
		return c.value, nil
	}
	value, err := c.collect(ctx)
	if err != nil {
		return value, err
	}
	c.at, c.isSet, c.value = at, true, value
	return value, nil
}

// unchanged returns the listed clusters, but uses the former object of each cluster that did not change. Lists from the cache
// have new objects for all clusters, and the scheduler examines each object that it has not seen. Both lists must be sorted by
// name.
func unchanged(former, clusters []*clusterv1.ManagedCluster) []*clusterv1.ManagedCluster {
	result := make([]*clusterv1.ManagedCluster, len(clusters))
	for i, c := range clusters {
		for len(former) > 0 && former[0].Name < c.Name {
			former = former[1:]
		}
		if len(former) > 0 && former[0].Name == c.Name && former[0].UID == c.UID && former[0].ResourceVersion == c.ResourceVersion {
			result[i] = former[0]
			continue
		}
		// A pointer into the list would keep the whole list in memory, so the object is copied.
		object := *c
		result[i] = &object
	}
	return result
}

// scores holds all AddOnPlacementScores at one time. As long as no score changes, the same *scores is used.
type scores struct {
	named map[types.NamespacedName]*clusterv1alpha1.AddOnPlacementScore
	// names maps the namespace of a cluster to the names of its scores.
	names map[string][]string
}

// FindScore implements [cluster.ScoreFinder].
func (s *scores) FindScore(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error) {
	return s.named[types.NamespacedName{Namespace: namespace, Name: name}], nil
}

// ScoreNames implements [placement.ScoreNamer].
func (s *scores) ScoreNames(namespace string) []string { return s.names[namespace] }

func collectScores(ctx context.Context, reader client.Reader) (*scores, error) {
	var list clusterv1alpha1.AddOnPlacementScoreList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list AddOnPlacementScores: %w", err)
	}
	result := &scores{make(map[types.NamespacedName]*clusterv1alpha1.AddOnPlacementScore, len(list.Items)), map[string][]string{}}
	for i := range list.Items {
		object := &list.Items[i]
		result.named[client.ObjectKeyFromObject(object)] = object
		result.names[object.Namespace] = append(result.names[object.Namespace], object.Name)
	}
	return result, nil
}
