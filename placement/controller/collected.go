// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// collected is something made of all objects of a kind in the cache. When a cluster
// changes, all Placements that may choose it are decided: it is made once for all of
// them and not once for each.
type collected[T any] struct {
	collect func(context.Context) (T, error)

	changes atomic.Uint64

	mutex sync.Mutex
	// at is how many changes there were before value was made.
	at    uint64
	made  bool
	value T
}

// changed tells that the cache has changed. It must be called after that, and before
// the Placements that it concerns are queued.
func (c *collected[T]) changed() { c.changes.Add(1) }

// get returns what is collected since the last change. It must not be modified.
func (c *collected[T]) get(ctx context.Context) (T, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	at := c.changes.Load()
	if c.made && c.at == at {
		return c.value, nil
	}
	value, err := c.collect(ctx)
	if err != nil {
		return value, err
	}
	c.at, c.made, c.value = at, true, value
	return value, nil
}

// unchanged returns the clusters, with the former object for each that has not changed:
// lists from the cache have new objects for all, and the scheduler looks at those only
// that it does not know. Both are sorted by name.
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
		// A copy does not keep the list that it was in from being freed.
		object := *c
		result[i] = &object
	}
	return result
}

// scores are all AddOnPlacementScores at one moment. As long as none changes, they are the same.
type scores struct {
	named map[types.NamespacedName]*clusterv1alpha1.AddOnPlacementScore
}

// FindScore implements [cluster.ScoreFinder].
func (s *scores) FindScore(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error) {
	return s.named[types.NamespacedName{Namespace: namespace, Name: name}], nil
}

func collectScores(ctx context.Context, reader client.Reader) (*scores, error) {
	var list clusterv1alpha1.AddOnPlacementScoreList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list AddOnPlacementScores: %w", err)
	}
	result := make(map[types.NamespacedName]*clusterv1alpha1.AddOnPlacementScore, len(list.Items))
	for i := range list.Items {
		result[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
	}
	return &scores{result}, nil
}
