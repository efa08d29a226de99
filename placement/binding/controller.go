// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package binding

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Name is the name of the controller in logs and metrics.
const Name = "celset-binding"

// ServiceAccount is the name of the ServiceAccounts whose rights decide which sets are bound to their namespace.
const ServiceAccount = "placement"

// Cache changes the options of a manager's cache so that the cache holds only ServiceAccounts named [ServiceAccount].
func Cache(options cache.Options) cache.Options {
	byObject := map[client.Object]cache.ByObject{
		&corev1.ServiceAccount{}: {Field: fields.OneTermEqualSelector("metadata.name", ServiceAccount)},
	}
	for object, by := range options.ByObject {
		byObject[object] = by
	}
	options.ByObject = byObject
	return options
}

// Add adds the controller to a manager. The manager's scheme must have the types of clusterv1beta2, corev1, rbacv1 and
// authorizationv1.
func Add(mgr manager.Manager) error {
	r := &reconciler{client: mgr.GetClient()}
	created := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return builder.ControllerManagedBy(mgr).Named(Name).
		For(&corev1.ServiceAccount{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(object client.Object) bool {
			return object.GetName() == ServiceAccount
		}))).
		Owns(&clusterv1beta2.ManagedClusterSetBinding{}).
		Watches(&clusterv1beta2.ManagedClusterSet{}, handler.EnqueueRequestsFromMapFunc(r.all), created).
		Watches(&rbacv1.ClusterRole{}, handler.EnqueueRequestsFromMapFunc(r.ofRole)).
		Watches(&rbacv1.ClusterRoleBinding{}, handler.EnqueueRequestsFromMapFunc(ofRoleBinding)).
		Complete(r)
}

func request(namespace string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: ServiceAccount}}
}

func ofRoleBinding(_ context.Context, object client.Object) []reconcile.Request {
	var result []reconcile.Request
	if binding, ok := object.(*rbacv1.ClusterRoleBinding); ok {
		for _, namespace := range namespacesOf(binding) {
			result = append(result, request(namespace))
		}
	}
	return result
}

// ofRole returns the accounts that are granted a changed ClusterRole.
func (r *reconciler) ofRole(ctx context.Context, object client.Object) []reconcile.Request {
	var list rbacv1.ClusterRoleBindingList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Listing ClusterRoleBindings failed", "clusterRole", object.GetName())
		return nil
	}
	var result []reconcile.Request
	for i := range list.Items {
		if list.Items[i].RoleRef.Name == object.GetName() {
			result = append(result, ofRoleBinding(ctx, &list.Items[i])...)
		}
	}
	return result
}

// all returns all accounts, because each of them may have rights to all sets.
func (r *reconciler) all(ctx context.Context, object client.Object) []reconcile.Request {
	var list corev1.ServiceAccountList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Listing ServiceAccounts failed", "clusterSet", object.GetName())
		return nil
	}
	var result []reconcile.Request
	for i := range list.Items {
		if list.Items[i].Name == ServiceAccount {
			result = append(result, request(list.Items[i].Namespace))
		}
	}
	return result
}
