// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package binding

import (
	"context"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// denied is the delay before a denied right is reviewed again although a role grants the right. The API server may receive
// roles later than this controller.
const denied = 5 * time.Second

type reconciler struct {
	client client.Client
}

// Reconcile creates and deletes bindings so that the bindings owned by an account match the account's rights.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	account := &corev1.ServiceAccount{}
	if err := r.client.Get(ctx, request.NamespacedName, account); err != nil || !account.DeletionTimestamp.IsZero() {
		// The garbage collector deletes the bindings of a deleted account.
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	candidates, err := r.candidates(ctx, account.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	allowed := sets.New[string]()
	for _, name := range sets.List(candidates) {
		ok, err := r.mayBind(ctx, account, name)
		if err != nil {
			return reconcile.Result{}, err
		}
		if ok {
			allowed.Insert(name)
		}
	}
	if err := r.write(ctx, account, allowed); err != nil {
		return reconcile.Result{}, err
	}
	if len(allowed) < len(candidates) {
		return reconcile.Result{RequeueAfter: denied}, nil
	}
	return reconcile.Result{}, nil
}

// candidates returns the existing sets that the account's roles name.
func (r *reconciler) candidates(ctx context.Context, namespace string) (sets.Set[string], error) {
	mentioned, err := r.scope(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var list clusterv1beta2.ManagedClusterSetList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ManagedClusterSets: %w", err)
	}
	result := sets.New[string]()
	for i := range list.Items {
		if set := &list.Items[i]; set.DeletionTimestamp.IsZero() && mentioned.has(set.Name) {
			result.Insert(set.Name)
		}
	}
	return result, nil
}

// scope returns the sets that the account's own roles name. Roles of groups are ignored.
func (r *reconciler) scope(ctx context.Context, namespace string) (*scope, error) {
	var list rbacv1.ClusterRoleBindingList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ClusterRoleBindings: %w", err)
	}
	result := &scope{names: sets.New[string]()}
	for i := range list.Items {
		if !sets.New(namespacesOf(&list.Items[i])...).Has(namespace) {
			continue
		}
		role := &rbacv1.ClusterRole{}
		err := r.client.Get(ctx, types.NamespacedName{Name: list.Items[i].RoleRef.Name}, role, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get ClusterRole %s: %w", list.Items[i].RoleRef.Name, err)
		}
		for _, rule := range role.Rules {
			result.add(rule)
		}
	}
	return result, nil
}

// mayBind asks the API server, with a SubjectAccessReview, whether an account may bind a set.
func (r *reconciler) mayBind(ctx context.Context, account *corev1.ServiceAccount, set string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   serviceaccount.MakeUsername(account.Namespace, account.Name),
		Groups: append(serviceaccount.MakeGroupNames(account.Namespace), "system:authenticated"),
		UID:    string(account.UID),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: clusterv1beta2.GroupName, Resource: resource, Subresource: subresource, Verb: verb, Name: set,
		},
	}}
	if err := r.client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("review whether ServiceAccount %s/%s may bind ManagedClusterSet %s: %w", account.Namespace, account.Name, set, err)
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}

// write creates the missing bindings of the allowed sets. It deletes bindings that the account owns if their set is not
// allowed.
func (r *reconciler) write(ctx context.Context, account *corev1.ServiceAccount, allowed sets.Set[string]) error {
	var list clusterv1beta2.ManagedClusterSetBindingList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy, client.InNamespace(account.Namespace)); err != nil {
		return fmt.Errorf("list ManagedClusterSetBindings in namespace %s: %w", account.Namespace, err)
	}
	missing := allowed.Clone()
	for i := range list.Items {
		object := &list.Items[i]
		missing.Delete(object.Name)
		if !metav1.IsControlledBy(object, account) || allowed.Has(object.Name) || !object.DeletionTimestamp.IsZero() {
			continue
		}
		if err := client.IgnoreNotFound(r.client.Delete(ctx, object, client.Preconditions{UID: &object.UID})); err != nil {
			return fmt.Errorf("delete ManagedClusterSetBinding %s/%s: %w", object.Namespace, object.Name, err)
		}
	}
	for _, name := range sets.List(missing) {
		if err := r.create(ctx, account, name); err != nil {
			return err
		}
	}
	return nil
}

func (r *reconciler) create(ctx context.Context, account *corev1.ServiceAccount, set string) error {
	object := &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: account.Namespace, Name: set,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(account, corev1.SchemeGroupVersion.WithKind("ServiceAccount"))},
		},
		Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set},
	}
	err := r.client.Create(ctx, object)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ManagedClusterSetBinding %s/%s: %w", object.Namespace, object.Name, err)
	}
	return nil
}

const (
	resource    = "managedclustersets"
	subresource = "bind"
	verb        = "create"
)

// scope is a set of names of ManagedClusterSets. If all is set, it has every name.
type scope struct {
	all   bool
	names sets.Set[string]
}

// add adds the sets that a rule permits to bind.
func (s *scope) add(rule rbacv1.PolicyRule) {
	if !mentions(rule.APIGroups, clusterv1beta2.GroupName) || !mentions(rule.Verbs, verb) ||
		!mentions(rule.Resources, resource+"/"+subresource, "*/"+subresource) {
		return
	}
	s.all = s.all || len(rule.ResourceNames) == 0
	s.names = s.names.Union(sets.New(rule.ResourceNames...))
}

func (s *scope) has(name string) bool { return s.all || s.names.Has(name) }

// mentions reports whether list contains one of the names, or "*".
func mentions(list []string, names ...string) bool {
	return slices.ContainsFunc(list, func(item string) bool { return item == rbacv1.ResourceAll || slices.Contains(names, item) })
}

// namespacesOf returns the namespaces whose ServiceAccount named [ServiceAccount] is a subject of the ClusterRoleBinding.
func namespacesOf(object *rbacv1.ClusterRoleBinding) []string {
	var result []string
	for _, subject := range object.Subjects {
		if subject.Kind == rbacv1.ServiceAccountKind && subject.APIGroup == "" && subject.Name == ServiceAccount {
			result = append(result, subject.Namespace)
		}
	}
	slices.Sort(result)
	return slices.Compact(result)
}
