// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package redteam

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/testing/fleet"
	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

const (
	alice   = "alice"
	mallory = "mallory"
	// unchecked is another namespace of mallory, whose objects are not sent to the webhook. Programs must survive objects that
	// the webhook would reject, because a site may run without the webhook.
	unchecked = "mallory-unchecked"

	driver = "mla.example.com"

	nodes    = 8
	devices  = 64 // number of devices on each node
	clusters = 20
)

// rights allow alice and mallory all requests in their own namespaces, and none in other namespaces.
const rights = `
{apiVersion: v1, kind: Namespace, metadata: {name: alice}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: mallory}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: mallory-unchecked, labels: {celset-webhook: unasked}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: crowd, labels: {celset-webhook: unasked}}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: urgent}, value: 1000}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: tenant}
rules:
- {apiGroups: ["", resource.k8s.io, cluster.open-cluster-management.io], resources: [pods, resourceclaims, placements], verbs: ["*"]}
- {apiGroups: [cluster.open-cluster-management.io], resources: [placementdecisions], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant, namespace: alice}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tenant}
subjects: [{kind: User, name: alice, apiGroup: rbac.authorization.k8s.io}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant, namespace: mallory}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tenant}
subjects: [{kind: User, name: mallory, apiGroup: rbac.authorization.k8s.io}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant, namespace: mallory-unchecked}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tenant}
subjects: [{kind: User, name: mallory, apiGroup: rbac.authorization.k8s.io}]
`

// A lab is a control plane that is also a hub of Open Cluster Management.
type lab struct {
	*env.Hub
	// admin, alice and mallory are clients with the rights of these users.
	admin, alice, mallory client.Client
	// patches is a client that sends patches. It doesn't decode responses, because typed clients can't decode some of the objects.
	patches rest.Interface
	// tokens maps the name of a user to the user's token.
	tokens map[string]string
	crowd  crowd
	// bound is the number of pods that scheduleOnce has created.
	bound int
	// webhookAddress is the host and port of the webhook.
	webhookAddress string
}

func startLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{tokens: map[string]string{}, Hub: env.StartHub(t, controlplane.Options{
		Users: []controlplane.User{env.Scheduler, env.Webhook, env.Placement, {Name: alice}, {Name: mallory}},
	}, controlplane.CelsetScheduler, "celset-webhook", "celset-placement")}
	l.ApplyManifests(t, "scheduler/rbac.yaml", "examples/deviceclasses.yaml", "webhook/base/rbac.yaml", "placement/rbac.yaml")
	l.ApplyText(t, rights)
	l.admin = l.client(t, controlplane.AdminUser)
	l.alice, l.mallory = l.client(t, alice), l.client(t, mallory)
	l.patches = l.ControlPlane.Client().CoreV1().RESTClient()
	l.populate(t)
	return l
}

// client returns a client with the rights of a user, without a client-side rate limit.
func (l *lab) client(t *testing.T, user string) client.Client {
	t.Helper()
	config := l.ConfigOf(t, user)
	l.tokens[user] = config.BearerToken
	config.WarningHandler = rest.NoWarnings{}
	c, err := client.New(config, client.Options{Scheme: l.Scheme()})
	require.NoError(t, err)
	return c
}

// populate creates nodes with devices, and managed clusters that Placements in all namespaces may select.
func (l *lab) populate(t *testing.T) {
	t.Helper()
	names, err := controlplane.CreateNodes(t.Context(), l.Client(), nodes, controlplane.NodeOptions{
		Static: true, Capacity: corev1.ResourceList{corev1.ResourcePods: *quantity("10000")},
	})
	require.NoError(t, err)
	ring, err := topology.NewRing(topology.Family{Driver: driver, Prefix: "mla"}, devices)
	require.NoError(t, err)
	crowded, err := controlplane.CreateNodes(t.Context(), l.Client(), crowdedNodes, crowdedOptions)
	require.NoError(t, err)
	l.Publish(t, ring, append(names, crowded...)...)
	l.crowd.gather(crowded, ring)
	require.NoError(t, l.fillCrowd(t.Context()))
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "global"}}
	set.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{}}
	require.NoError(t, l.admin.Create(t.Context(), set))
	for _, namespace := range []string{alice, mallory, unchecked} {
		binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "global"}}
		binding.Spec.ClusterSet = "global"
		require.NoError(t, l.admin.Create(t.Context(), binding))
	}
	for i := range clusters {
		object := fleet.Cluster(i, time.Now())
		status := object.Status
		maps.Copy(object.Annotations, shared())
		object.UID, object.ResourceVersion, object.ManagedFields = "", "", nil
		require.NoError(t, l.admin.Create(t.Context(), object))
		object.Status = status
		require.NoError(t, l.admin.Status().Update(t.Context(), object))
	}
}
