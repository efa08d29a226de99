// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package binding

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/celset/celset/placement/binding"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// start starts a hub and the controller, and returns a client.
func start(t *testing.T) client.Client {
	t.Helper()
	hub := env.StartHub(t, controlplane.Options{Controllers: []string{"garbage-collector-controller"}})
	hub.Manage(t, hub.ConfigOf(t, controlplane.AdminUser), manager.Options{Cache: binding.Cache(cache.Options{})}, binding.Add)
	return hub
}

func TestRightsBecomeBindings(t *testing.T) {
	c := start(t)
	create := func(object client.Object) { t.Helper(); require.NoError(t, c.Create(t.Context(), object)) }
	bound := func(want ...string) {
		t.Helper()
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			var list clusterv1beta2.ManagedClusterSetBindingList
			require.NoError(t, c.List(context.Background(), &list, client.InNamespace("default")))
			got := []string{}
			for _, object := range list.Items {
				got = append(got, object.Name)
				require.Equal(t, object.Name, object.Spec.ClusterSet)
			}
			require.ElementsMatch(t, want, got)
			// The garbage collector may need half a minute to discover the kinds of a hub.
		}, 2*time.Minute, 50*time.Millisecond)
	}
	for _, name := range []string{"eu", "us", "cn"} {
		create(&clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	create(&clusterv1beta2.ManagedClusterSetBinding{ // a binding that a user created
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cn"},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "cn"},
	})
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "bind"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{clusterv1beta2.GroupName}, Resources: []string{"managedclustersets/bind"}, Verbs: []string{"create"},
		ResourceNames: []string{"eu", "later"},
	}}}
	create(role)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: binding.ServiceAccount}}
	create(account)
	granted := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "team"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "bind"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: binding.ServiceAccount}},
	}
	create(granted)
	bound("cn", "eu")
	create(&clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "later"}})
	bound("cn", "eu", "later")
	role.Rules[0].ResourceNames = []string{"us", "later"}
	require.NoError(t, c.Update(t.Context(), role))
	bound("cn", "us", "later")
	require.NoError(t, c.Delete(t.Context(), granted))
	bound("cn")

	granted.ObjectMeta = metav1.ObjectMeta{Name: "team"}
	create(granted)
	bound("cn", "us", "later")
	require.NoError(t, c.Delete(t.Context(), account))
	bound("cn")
}
