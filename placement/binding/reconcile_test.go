// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package binding

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// fixture is a reconciler with a fake API server that stores objects in memory and answers reviews from a map.
type fixture struct {
	reconciler
	account *corev1.ServiceAccount
	// reviews has the answer to the review of each set. The review of a set that is not in the map fails.
	reviews map[string]authorizationv1.SubjectAccessReviewStatus
	asked   []authorizationv1.SubjectAccessReviewSpec
}

var errReview = errors.New("no answer")

// newFixture returns a fixture with the sets cn, eu and us. A role of the account names eu and us. A role of the group of all
// accounts names all sets.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{
		account: &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: ServiceAccount, UID: "u"}},
		reviews: map[string]authorizationv1.SubjectAccessReviewStatus{},
	}
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), clusterv1beta2.Install(scheme)))
	objects := []client.Object{f.account}
	for _, name := range []string{"cn", "eu", "us"} {
		objects = append(objects, &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for name, subject := range map[string]rbacv1.Subject{
		"own": {Kind: rbacv1.ServiceAccountKind, Namespace: "team", Name: ServiceAccount},
		"all": {Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts"},
	} {
		rule := rbacv1.PolicyRule{APIGroups: []string{clusterv1beta2.GroupName}, Resources: []string{"managedclustersets/bind"}, Verbs: []string{"create"}}
		if name == "own" {
			rule.ResourceNames = []string{"eu", "us", "gone"}
		}
		objects = append(objects,
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}},
			&rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{subject},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			})
	}
	f.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{Create: f.answer}).Build()
	return f
}

// answer handles a create request: it answers reviews and stores other objects.
func (f *fixture) answer(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
	review, is := object.(*authorizationv1.SubjectAccessReview)
	if !is {
		return c.Create(ctx, object, options...)
	}
	f.asked = append(f.asked, review.Spec)
	status, found := f.reviews[review.Spec.ResourceAttributes.Name]
	if !found {
		return errReview
	}
	review.Status = status
	return nil
}

// bound returns the names of the account's bindings.
func (f *fixture) bound(t *testing.T) []string {
	t.Helper()
	var list clusterv1beta2.ManagedClusterSetBindingList
	require.NoError(t, f.client.List(t.Context(), &list, client.InNamespace("team")))
	var names []string
	for _, object := range list.Items {
		require.Equal(t, object.Name, object.Spec.ClusterSet)
		names = append(names, object.Name)
	}
	return names
}

// TestOnlyGrantedSetsAreBound checks that the API server decides about each set that a role names. A denied set is reviewed
// again, because the API server may receive roles later.
func TestOnlyGrantedSetsAreBound(t *testing.T) {
	f := newFixture(t)
	foreign := &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "cn"}, Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "cn"},
	}
	require.NoError(t, f.client.Create(t.Context(), foreign))
	f.reviews["eu"] = authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	for _, status := range []authorizationv1.SubjectAccessReviewStatus{{}, {Allowed: true, Denied: true}} {
		f.reviews["us"] = status
		result, err := f.Reconcile(t.Context(), request("team"))
		require.NoError(t, err)
		require.Equal(t, denied, result.RequeueAfter)
		require.Equal(t, []string{"cn", "eu"}, f.bound(t))
	}
	require.Len(t, f.asked, 4, "neither about sets that are gone nor about those of a group")
	require.Equal(t, authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:team:placement", UID: "u",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:team", "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: "cluster.open-cluster-management.io", Resource: "managedclustersets", Subresource: "bind", Verb: "create", Name: "eu",
		},
	}, f.asked[0])

	f.reviews["us"] = f.reviews["eu"]
	f.reviews["eu"] = authorizationv1.SubjectAccessReviewStatus{}
	_, err := f.Reconcile(t.Context(), request("team"))
	require.NoError(t, err)
	require.Equal(t, []string{"cn", "us"}, f.bound(t), "the account owns eu, and somebody else cn")
}

// TestErrorsUnbindNothing checks that existing bindings stay if a review fails.
func TestErrorsUnbindNothing(t *testing.T) {
	f := newFixture(t)
	granted := authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	f.reviews["eu"], f.reviews["us"] = granted, granted
	result, err := f.Reconcile(t.Context(), request("team"))
	require.NoError(t, err)
	require.Zero(t, result)
	require.Equal(t, []string{"eu", "us"}, f.bound(t))

	f.reviews = map[string]authorizationv1.SubjectAccessReviewStatus{"eu": {}}
	_, err = f.Reconcile(t.Context(), request("team"))
	require.ErrorIs(t, err, errReview)
	require.ErrorContains(t, err, "ServiceAccount team/placement may bind ManagedClusterSet us")
	require.Equal(t, []string{"eu", "us"}, f.bound(t))

	require.NoError(t, f.client.Delete(t.Context(), f.account))
	_, err = f.Reconcile(t.Context(), request("team"))
	require.NoError(t, err)
	require.Equal(t, []string{"eu", "us"}, f.bound(t), "the garbage collector deletes them")
}

// TestRequestsForAccounts checks which accounts a change queues: the accounts whose rights may have changed.
func TestRequestsForAccounts(t *testing.T) {
	f := newFixture(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "own"}}
	require.Equal(t, "team", f.ofRole(t.Context(), role)[0].Namespace)
	role.Name = "all"
	require.Empty(t, f.ofRole(t.Context(), role))
	require.NoError(t, f.client.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "default"}}))
	require.Equal(t, "team", f.all(t.Context(), &clusterv1beta2.ManagedClusterSet{})[0].Namespace)
	require.Len(t, f.all(t.Context(), &clusterv1beta2.ManagedClusterSet{}), 1)
}
