// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Inventory reads the clusters of a hub. Callers must not modify the results.
type Inventory interface {
	// Object returns an empty object of the kind that describes a cluster on this hub.
	Object() client.Object
	// Group returns an empty object of a kind that assigns several clusters to a ManagedClusterSet. It returns nil if there is no
	// such kind.
	Group() client.Object
	// Cache changes the options of the cache that the inventory reads from.
	Cache(options cache.Options) cache.Options
	// Clusters returns all clusters, sorted by name. Names are unique.
	Clusters(ctx context.Context, reader client.Reader) ([]*clusterv1.ManagedCluster, error)
	// Cluster returns the cluster with a name. If it does not exist, apierrors.IsNotFound is true for the error.
	Cluster(ctx context.Context, reader client.Reader, name string) (*clusterv1.ManagedCluster, error)
	// Of returns the cluster that is described by an object of the kind of Object.
	Of(ctx context.Context, reader client.Reader, object client.Object) (*clusterv1.ManagedCluster, error)
}

// ManagedClusters is the inventory of a hub with Open Cluster Management.
type ManagedClusters struct{}

// Object implements [Inventory].
func (ManagedClusters) Object() client.Object { return &clusterv1.ManagedCluster{} }

// Group implements [Inventory]. Only the labels of the clusters themselves assign them to sets.
func (ManagedClusters) Group() client.Object { return nil }

// Cache implements [Inventory].
func (ManagedClusters) Cache(options cache.Options) cache.Options { return options }

// Clusters implements [Inventory].
func (ManagedClusters) Clusters(ctx context.Context, reader client.Reader) ([]*clusterv1.ManagedCluster, error) {
	var list clusterv1.ManagedClusterList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ManagedClusters: %w", err)
	}
	result := make([]*clusterv1.ManagedCluster, len(list.Items))
	for i := range list.Items {
		result[i] = &list.Items[i]
	}
	return byName(result), nil
}

// Cluster implements [Inventory].
func (ManagedClusters) Cluster(ctx context.Context, reader client.Reader, name string) (*clusterv1.ManagedCluster, error) {
	result := &clusterv1.ManagedCluster{}
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, result, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return result, nil
}

// Of implements [Inventory].
func (ManagedClusters) Of(_ context.Context, _ client.Reader, object client.Object) (*clusterv1.ManagedCluster, error) {
	cluster, ok := object.(*clusterv1.ManagedCluster)
	if !ok {
		return nil, fmt.Errorf("a %T is not a ManagedCluster", object)
	}
	return cluster, nil
}

func byName(clusters []*clusterv1.ManagedCluster) []*clusterv1.ManagedCluster {
	slices.SortFunc(clusters, func(a, b *clusterv1.ManagedCluster) int { return strings.Compare(a.Name, b.Name) })
	return clusters
}
