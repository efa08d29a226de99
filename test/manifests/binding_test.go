// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

const (
	clusterGroup = "cluster.open-cluster-management.io"
	// team is a namespace where all users may create ManagedClusterSetBindings. binder is a user who may also bind two sets.
	team   = "team"
	tenant = "tenant"
	binder = "binder"
)

var bindings = schema.GroupVersionResource{Group: clusterGroup, Version: "v1beta2", Resource: "managedclustersetbindings"}

// TestBindingTakesTheRight applies the admission policy of the stand-alone overlay, and sends requests as different users. The
// policy asks the API server for the users' RBAC rights.
func TestBindingTakesTheRight(t *testing.T) {
	server := server(t)
	server.grantBinding(t)
	admin := server.bindings(t, controlplane.AdminUser)
	// Bindings that existed before the policy can be changed, except for their clusterSet.
	for _, stored := range []*unstructured.Unstructured{bindingOf("eu", "eu"), bindingOf("old", "us")} {
		_, err := admin.Create(t.Context(), stored, metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, admin.Delete(context.WithoutCancel(t.Context()), stored.GetName(), metav1.DeleteOptions{}))
		})
	}
	objects := rendered(t, "overlays/placement-standalone")
	for _, object := range objects {
		server.ensureNamespace(t, object)
		if isAboutRights(object) || object.GetKind() == "ValidatingAdmissionPolicy" || object.GetKind() == "ValidatingAdmissionPolicyBinding" {
			server.store(t, object.Object)
		}
	}
	server.awaitPolicy(t)

	for name, test := range map[string]struct {
		user, name, set string
		reason          metav1.StatusReason // empty if the request must be allowed
		err             string
	}{
		"without the right": {tenant, "eu-2", "eu-2", metav1.StatusReasonForbidden,
			`user "tenant" is not allowed to bind ManagedClusterSet "eu-2": it takes the verb create on managedclustersets/bind`},
		"with the right":               {user: binder, name: "eu-2", set: "eu-2"},
		"with that for another set":    {binder, "us", "us", metav1.StatusReasonForbidden, `user "binder" is not allowed to bind ManagedClusterSet "us"`},
		"under another name":           {binder, "mine", "eu", metav1.StatusReasonInvalid, `must have the name of the ManagedClusterSet in spec.clusterSet, which is "eu"`},
		"under another's name":         {binder, "eu-2", "us", metav1.StatusReasonInvalid, `must have the name of the ManagedClusterSet in spec.clusterSet, which is "us"`},
		"no set":                       {binder, "eu-2", "", metav1.StatusReasonInvalid, "clusterSet"},
		"by the administrator":         {user: controlplane.AdminUser, name: "us", set: "us"},
		"by celset-placement":          {user: env.Placement.Name, name: "us", set: "us"},
		"by one of the same namespace": {"system:serviceaccount:" + team + ":placement", "eu-2", "eu-2", metav1.StatusReasonForbidden, "is not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := server.bindings(t, test.user).Create(t.Context(), bindingOf(test.name, test.set), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			require.Equal(t, test.reason, reasonOf(err), "%v", err)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
			}
		})
	}

	// A user can't list the sets that it may bind, but can ask about each set.
	for user, want := range map[string]map[string]bool{
		tenant: {"eu": false, "eu-2": false, "us": false},
		binder: {"eu": true, "eu-2": true, "us": false},
	} {
		for set, allowed := range want {
			t.Run("may "+user+" bind "+set, func(t *testing.T) { require.Equal(t, allowed, server.mayBind(t, user, set)) })
		}
	}

	for name, test := range map[string]struct{ user, name, patch, err string }{
		"labels":                 {tenant, "eu", `{"metadata":{"labels":{"a":"b"}}}`, ""},
		"labels of a wrong name": {tenant, "old", `{"metadata":{"labels":{"a":"b"}}}`, ""},
		"set":                    {tenant, "eu", `{"spec":{"clusterSet":"us"}}`, "must have the name"},
		"set, with some right":   {binder, "eu", `{"spec":{"clusterSet":"us"}}`, "must have the name"},
		"of a wrong name":        {binder, "old", `{"spec":{"clusterSet":"eu"}}`, "must have the name"},
		"to its name":            {binder, "old", `{"spec":{"clusterSet":"old"}}`, `user "binder" is not allowed to bind ManagedClusterSet "old"`},
	} {
		t.Run("changed "+name, func(t *testing.T) {
			_, err := server.bindings(t, test.user).Patch(t.Context(), test.name, types.MergePatchType, []byte(test.patch), metav1.PatchOptions{})
			if test.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.err)
			}
		})
	}
}

func bindingOf(name, set string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": bindings.GroupVersion().String(),
		"kind":       "ManagedClusterSetBinding",
		"metadata":   map[string]any{"name": name, "namespace": team},
		"spec":       map[string]any{"clusterSet": set},
	}}
}

func reasonOf(err error) metav1.StatusReason {
	if err == nil {
		return ""
	}
	return apierrors.ReasonForError(err)
}

// bindings returns a client of the user for ManagedClusterSetBindings in the namespace.
func (s *apiServer) bindings(t *testing.T, user string) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(s.configOf(user))
	require.NoError(t, err)
	return client.Resource(bindings).Namespace(team)
}

// mayBind asks the API server, like "kubectl auth can-i", whether the user may bind the set.
func (s *apiServer) mayBind(t *testing.T, user, set string) bool {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.configOf(user))
	require.NoError(t, err)
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: clusterGroup, Resource: "managedclustersets", Subresource: "bind", Name: set, Verb: "create",
		}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return review.Status.Allowed
}

func (s *apiServer) configOf(user string) *rest.Config {
	config := rest.CopyConfig(s.RESTConfig())
	if user != controlplane.AdminUser {
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	}
	return config
}

// grantBinding allows all users to create bindings in the namespace, and the user binder to bind some sets.
func (s *apiServer) grantBinding(t *testing.T) {
	t.Helper()
	namespace := &unstructured.Unstructured{}
	namespace.SetKind("Namespace")
	namespace.SetName(team)
	s.ensureNamespace(t, namespace)
	user := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
	}
	rbac := s.Client().RbacV1()
	_, err := rbac.Roles(team).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "bindings"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{clusterGroup}, Resources: []string{bindings.Resource}, Verbs: []string{"*"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = rbac.RoleBindings(team).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bindings"},
		Subjects:   []rbacv1.Subject{user(tenant), user(binder), {Kind: rbacv1.ServiceAccountKind, Namespace: team, Name: "placement"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "bindings"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = rbac.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "bind-eu"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{clusterGroup}, Resources: []string{"managedclustersets/bind"}, ResourceNames: []string{"eu", "eu-2"}, Verbs: []string{"create"},
		}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bind-eu"},
		Subjects:   []rbacv1.Subject{user(binder)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "bind-eu"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// awaitPolicy waits until the API server enforces the policy and the rights: until the API server rejects a binding of the
// administrator with a wrong name, and accepts a binding of the binder.
func (s *apiServer) awaitPolicy(t *testing.T) {
	t.Helper()
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		_, wrong := s.bindings(t, controlplane.AdminUser).Create(ctx, bindingOf("wrong", "eu"), dryRun)
		_, right := s.bindings(t, binder).Create(ctx, bindingOf("eu-2", "eu-2"), dryRun)
		_, ours := s.bindings(t, env.Placement.Name).Create(ctx, bindingOf("us", "us"), dryRun)
		return wrong != nil && right == nil && ours == nil, ctx.Err()
	}))
}
