// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/celset/celset/placement"
)

// The functions below map an event to the Placements that it may affect. An unaffected Placement only costs a needless
// decision, but a missing Placement keeps an outdated decision. So doubtful Placements are included. An update is mapped with
// the old and the new object, so that a set that a cluster leaves counts as well.

// ofCluster returns the Placements that may select the cluster described by a changed object.
func (r *reconciler) ofCluster(ctx context.Context, object client.Object) []reconcile.Request {
	r.clusters.changed()
	managed, err := r.inventory.Of(ctx, r.client, object)
	if err != nil {
		log.FromContext(ctx).Error(err, "Reading a cluster failed", "cluster", object.GetName())
		return nil
	}
	return r.choosing(ctx, managed)
}

// ofGroup returns all Placements. The changed object assigns several clusters to sets, and such objects rarely change.
func (r *reconciler) ofGroup(ctx context.Context, _ client.Object) []reconcile.Request {
	r.clusters.changed()
	var list clusterv1beta2.ManagedClusterSetList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Listing ManagedClusterSets failed")
		return nil
	}
	names := sets.New[string]()
	for i := range list.Items {
		names.Insert(list.Items[i].Name)
	}
	return r.ofSets(ctx, names)
}

// choosing returns the Placements that may select the given cluster.
func (r *reconciler) choosing(ctx context.Context, object *clusterv1.ManagedCluster) []reconcile.Request {
	var list clusterv1beta2.ManagedClusterSetList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Listing ManagedClusterSets failed", "cluster", object.GetName())
		return nil
	}
	names := sets.New[string]()
	for i := range list.Items {
		if has(&list.Items[i], object.GetLabels()) {
			names.Insert(list.Items[i].Name)
		}
	}
	return r.ofSets(ctx, names)
}

// has reports whether a cluster with these labels may be in the set. If the set's selector is invalid, has returns true.
func has(set *clusterv1beta2.ManagedClusterSet, of map[string]string) bool {
	from := set.Spec.ClusterSelector
	switch from.SelectorType {
	case "", clusterv1beta2.ExclusiveClusterSetLabel:
		return of[clusterv1beta2.ClusterSetLabel] == set.Name
	case clusterv1beta2.LabelSelector:
		selector, err := metav1.LabelSelectorAsSelector(from.LabelSelector)
		return err != nil || selector.Matches(labels.Set(of))
	default:
		return true
	}
}

// ofClusterSet returns the Placements that use a changed ManagedClusterSet.
func (r *reconciler) ofClusterSet(ctx context.Context, object client.Object) []reconcile.Request {
	return r.ofSets(ctx, sets.New(object.GetName()))
}

// ofBinding returns the Placements that use the set of a changed ManagedClusterSetBinding. They are in the binding's namespace.
func (r *reconciler) ofBinding(ctx context.Context, object client.Object) []reconcile.Request {
	return r.wanting(ctx, object.GetNamespace(), sets.New(object.GetName()))
}

// ofScore returns the Placements that read a changed AddOnPlacementScore and may select its cluster.
func (r *reconciler) ofScore(ctx context.Context, object client.Object) []reconcile.Request {
	r.scores.changed()
	managed, err := r.inventory.Cluster(ctx, r.client, object.GetNamespace())
	if err != nil {
		// No Placement reads the scores of a missing cluster. If the cluster is created, its own event queues the Placements.
		return nil
	}
	return slices.DeleteFunc(r.choosing(ctx, managed), func(request reconcile.Request) bool {
		return !r.records.named(request.NamespacedName).reads.Has(object.GetName())
	})
}

// ofSets returns the Placements that use one of the named sets, in all namespaces to which the set is bound.
func (r *reconciler) ofSets(ctx context.Context, names sets.Set[string]) []reconcile.Request {
	if len(names) == 0 {
		return nil
	}
	var list clusterv1beta2.ManagedClusterSetBindingList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Listing ManagedClusterSetBindings failed")
		return nil
	}
	bound := map[string]sets.Set[string]{}
	for i := range list.Items {
		if binding := &list.Items[i]; names.Has(binding.Name) {
			if bound[binding.Namespace] == nil {
				bound[binding.Namespace] = sets.New[string]()
			}
			bound[binding.Namespace].Insert(binding.Name)
		}
	}
	var result []reconcile.Request
	for namespace, names := range bound {
		result = append(result, r.wanting(ctx, namespace, names)...)
	}
	return result
}

// wanting returns the Placements of a namespace that use one of the named sets, or whose conditions name sets.
func (r *reconciler) wanting(ctx context.Context, namespace string, names sets.Set[string]) []reconcile.Request {
	var list clusterv1beta1.PlacementList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy, client.InNamespace(namespace)); err != nil {
		log.FromContext(ctx).Error(err, "Listing Placements failed", "namespace", namespace)
		return nil
	}
	var result []reconcile.Request
	for i := range list.Items {
		object := &list.Items[i]
		wanted := object.Spec.ClusterSets
		key := client.ObjectKeyFromObject(object)
		if placement.Responsible(object, r.all) && (len(wanted) == 0 || names.HasAny(wanted...) || r.records.named(key).namesSets) {
			result = append(result, reconcile.Request{NamespacedName: key})
		}
	}
	return result
}
