// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package redteam

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/fleet"
	"github.com/celset/celset/internal/hub"
	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/placement/controller"
)

const (
	alice   = "alice"
	mallory = "mallory"
	// unchecked is another namespace of mallory's, where the webhook is not asked: what it
	// refuses has to be survived where it does not run, too.
	unchecked = "mallory-unchecked"

	driver = "mla.example.com"

	nodes    = 8
	devices  = 64 // on each
	clusters = 20

	schedulerAccount = "system:serviceaccount:kube-system:celset-scheduler"
	webhookAccount   = "system:serviceaccount:celset-system:celset-webhook"
	placementAccount = "system:serviceaccount:celset-system:celset-placement"
)

// rights: each user may do everything in the namespaces that are theirs, and nothing
// elsewhere.
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

// lab is a control plane that is a hub, too.
type lab struct {
	*controlplane.ControlPlane
	manifests string
	// admin, alice and mallory are clients.
	admin, alice, mallory client.Client
	// patches writes what no client of types can read.
	patches rest.Interface
	// tokens are those of users.
	tokens map[string]string
	crowd  crowd
	// webhookAddress is where the webhook listens.
	webhookAddress string
}

func startLab(t *testing.T) *lab {
	t.Helper()
	log.SetLogger(logr.Discard())
	root, err := controlplane.ModuleRoot()
	require.NoError(t, err)
	l := &lab{manifests: filepath.Join(root, "manifests"), tokens: map[string]string{}}
	dir, err := os.MkdirTemp("", "celset-redteam-")
	require.NoError(t, err)
	account := []string{"system:serviceaccounts"}
	l.ControlPlane, err = controlplane.Start(context.WithoutCancel(t.Context()), controlplane.Options{
		DataDir: dir, Progress: t.Output(), SkipKwok: true, SkipControllerManager: true,
		Prebuilt: os.Getenv(controlplane.BinDirEnv) != "",
		Users: []controlplane.User{
			{Name: schedulerAccount, Groups: append(account, "system:serviceaccounts:kube-system")},
			{Name: webhookAccount, Groups: account}, {Name: placementAccount, Groups: account},
			{Name: alice}, {Name: mallory},
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		l.Stop()
		if t.Failed() {
			t.Logf("the logs are in %s", l.LogDir())
			return
		}
		require.NoError(t, os.RemoveAll(dir))
	})
	require.NoError(t, hub.Install(t.Context(), l.RESTConfig()))
	for _, file := range []string{"scheduler/rbac.yaml", "examples/deviceclasses.yaml", "webhook/base/rbac.yaml", "placement/rbac.yaml"} {
		content, err := os.ReadFile(filepath.Join(l.manifests, file))
		require.NoError(t, err)
		l.apply(t, string(content))
	}
	l.apply(t, rights)
	l.admin = l.client(t, controlplane.AdminUser)
	l.alice, l.mallory = l.client(t, alice), l.client(t, mallory)
	l.patches = l.Client().CoreV1().RESTClient()
	l.populate(t)
	return l
}

func (l *lab) apply(t *testing.T, manifest string) {
	t.Helper()
	_, err := controlplane.Apply(t.Context(), l.RESTConfig(), []byte(manifest), controlplane.ApplyOptions{})
	require.NoError(t, err)
}

// client returns a client of a user that never waits for itself.
func (l *lab) client(t *testing.T, user string) client.Client {
	t.Helper()
	config, err := l.RESTConfig(), error(nil)
	if user != controlplane.AdminUser {
		config, err = l.RESTConfigFor(user)
		require.NoError(t, err)
	}
	l.tokens[user] = config.BearerToken
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), controller.AddToScheme(scheme)))
	c, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	return c
}

// populate makes nodes with devices, and clusters that all namespaces may select.
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
	for _, node := range append(names, crowded...) {
		slices, err := ring.ResourceSlices(node)
		require.NoError(t, err)
		for _, slice := range slices {
			require.NoError(t, l.admin.Create(t.Context(), slice))
		}
	}
	l.crowd.gather(crowded, ring)
	require.NoError(t, l.seat(t.Context()))
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
