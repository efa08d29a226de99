// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chart

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/controlplane"
)

// apply stores what a manifest has.
func (c *cluster) apply(t *testing.T, manifest string) error {
	t.Helper()
	_, err := controlplane.Apply(t.Context(), c.RESTConfig(), []byte(manifest), controlplane.ApplyOptions{})
	return err
}

func (c *cluster) applyFile(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, c.apply(t, string(content)), path)
}

// claim asks for devices of the ring with a constraint.
func claim(name, expression string) string {
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: %s, namespace: default}
spec:
  devices:
    requests: [{name: mla, exactly: {deviceClassName: mla.example.com, allocationMode: ExactCount, count: 4}}]
    constraints: [{requests: [mla], matchAttribute: celset.dev/ring4}]
    config:
    - opaque:
        driver: celset.dev
        parameters: {apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, name: ring4, expression: %q}
`, name, expression)
}

// connected is satisfied by four neighbours in the ring.
const connected = "devices.map(d, d.attributes['mla.example.com'].index).max() - devices.map(d, d.attributes['mla.example.com'].index).min() == 3"

// podOf is a pod of a profile, with the claim if there is one.
func podOf(name, profile, claim string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		SchedulerName: profile, Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10"}},
	}}
	if claim != "" {
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "devices", ResourceClaimName: &claim}}
		pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "devices"}}
	}
	return pod
}

// createPod creates a pod that nobody runs.
func (c *cluster) createPod(t *testing.T, name, profile, claim string) {
	t.Helper()
	_, err := c.Client().CoreV1().Pods(namespace).Create(t.Context(), podOf(name, profile, claim), metav1.CreateOptions{})
	require.NoError(t, err)
}

// requireBound waits until a pod has a node.
func (c *cluster) requireBound(t *testing.T, name string) {
	t.Helper()
	eventually(t, name+" is bound", func(ctx context.Context) (bool, error) {
		pod, err := c.Client().CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && pod.Spec.NodeName != "", err
	})
}

// requireConnected demands that a claim has four devices with consecutive numbers.
func (c *cluster) requireConnected(t *testing.T, name string) {
	t.Helper()
	claim, err := c.Client().ResourceV1().ResourceClaims(namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NotNil(t, claim.Status.Allocation)
	var numbers []int
	for _, result := range claim.Status.Allocation.Devices.Results {
		require.Equal(t, "mla.example.com", result.Driver)
		require.Equal(t, worker, result.Pool)
		var number int
		_, err := fmt.Sscanf(result.Device, "mla-%d", &number)
		require.NoError(t, err)
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	require.Len(t, numbers, 4)
	require.Equal(t, numbers[0]+3, numbers[3], numbers)
}

// holder is who has a lease in kube-system, empty for nobody.
func (c *cluster) holder(ctx context.Context, lease string) string {
	object, err := c.Client().CoordinationV1().Leases("kube-system").Get(ctx, lease, metav1.GetOptions{})
	if err != nil || object.Spec.HolderIdentity == nil {
		return ""
	}
	return *object.Spec.HolderIdentity
}

// requireLeader waits until a pod of celset-scheduler has a lease.
func (c *cluster) requireLeader(t *testing.T, lease string) {
	t.Helper()
	eventually(t, "celset-scheduler has the lease "+lease, func(ctx context.Context) (bool, error) {
		return strings.HasPrefix(c.holder(ctx, lease), "celset-scheduler-"), nil
	})
}

// requireDevices waits until the driver has published so many.
func (c *cluster) requireDevices(t *testing.T, count int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d devices", count), func(ctx context.Context) (bool, error) {
		slices, err := c.Client().ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
		return err == nil && len(slices.Items) == 1 && len(slices.Items[0].Spec.Devices) == count, err
	})
}

// requireMistakeRefused creates a claim with an expression that does not compile.
func (c *cluster) requireMistakeRefused(t *testing.T) {
	t.Helper()
	// The API server takes a moment to know the configuration of the webhook.
	var err error
	eventually(t, "the webhook is asked", func(context.Context) (bool, error) {
		_, err = controlplane.Apply(t.Context(), c.RESTConfig(), []byte(claim("mistaken", "devices.all(d, d.diver == 'mla')")), controlplane.ApplyOptions{DryRun: true})
		return err != nil, nil
	})
	require.ErrorContains(t, err, `admission webhook "claims.celset.dev" denied the request`)
	require.ErrorContains(t, err, "undefined field 'diver'")
}

// placement is one in the namespace team with the annotation, if it has a value.
func placement(name, annotation, expression string) string {
	annotations := "{}"
	if annotation != "" {
		annotations = fmt.Sprintf("{celset.dev/placement: %q}", annotation)
	}
	return fmt.Sprintf(`
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: %s, namespace: team, annotations: %s}
spec: {predicates: [{requiredClusterSelector: {celSelector: {celExpressions: [%q]}}}]}
`, name, annotations, expression)
}

func (c *cluster) dynamic(t *testing.T) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	return client
}

var (
	decisions = schema.GroupVersionResource{Group: "cluster.open-cluster-management.io", Version: "v1beta1", Resource: "placementdecisions"}
	bindings  = schema.GroupVersionResource{Group: "cluster.open-cluster-management.io", Version: "v1beta2", Resource: "managedclustersetbindings"}
)

// requireBinding waits until a set is bound to the namespace team.
func (c *cluster) requireBinding(t *testing.T, set string) {
	t.Helper()
	eventually(t, "a binding of "+set, func(ctx context.Context) (bool, error) {
		_, err := c.dynamic(t).Resource(bindings).Namespace("team").Get(ctx, set, metav1.GetOptions{})
		return err == nil, client.IgnoreNotFound(err)
	})
}

// decided waits for the clusters of a Placement.
func (c *cluster) decided(t *testing.T, name string) (clusters []string) {
	t.Helper()
	eventually(t, "a decision of "+name, func(ctx context.Context) (bool, error) {
		list, err := c.dynamic(t).Resource(decisions).Namespace("team").List(ctx, metav1.ListOptions{LabelSelector: "cluster.open-cluster-management.io/placement=" + name})
		if err != nil || len(list.Items) == 0 {
			return false, err
		}
		written, _, err := unstructured.NestedSlice(list.Items[0].Object, "status", "decisions")
		for _, decision := range written {
			clusters = append(clusters, decision.(map[string]any)["clusterName"].(string))
		}
		return len(clusters) > 0, err
	})
	return clusters
}

// removeOwn deletes what the test has created, and what a kubelet would.
func (c *cluster) removeOwn(t *testing.T) {
	t.Helper()
	ctx, core := t.Context(), c.Client().CoreV1()
	require.NoError(t, core.Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, metav1.ListOptions{}))
	// A claim that is in use has a finalizer until its pod is gone.
	require.NoError(t, c.Client().ResourceV1().ResourceClaims(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	// The kubelet does so when a driver is gone for a while.
	require.NoError(t, c.Client().ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	for _, resource := range []string{"managedclusters", "managedclustersets"} {
		version := map[string]string{"managedclusters": "v1", "managedclustersets": "v1beta2"}[resource]
		require.NoError(t, c.dynamic(t).Resource(schema.GroupVersionResource{Group: decisions.Group, Version: version, Resource: resource}).
			DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	}
	rbac := c.Client().RbacV1()
	require.NoError(t, client.IgnoreNotFound(rbac.ClusterRoles().Delete(ctx, "team-binds-europe", metav1.DeleteOptions{})))
	require.NoError(t, client.IgnoreNotFound(rbac.ClusterRoleBindings().Delete(ctx, "team-binds-europe", metav1.DeleteOptions{})))
	for _, definition := range []string{
		"certificates.cert-manager.io", "issuers.cert-manager.io", "podmonitors.monitoring.coreos.com", "prometheusrules.monitoring.coreos.com",
	} {
		definitions := c.dynamic(t).Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		require.NoError(t, client.IgnoreNotFound(definitions.Delete(ctx, definition, metav1.DeleteOptions{})))
		// The API server deletes the objects of the kind first.
		eventually(t, definition+" is gone", func(ctx context.Context) (bool, error) {
			_, err := definitions.Get(ctx, definition, metav1.GetOptions{})
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
	}
	for _, name := range []string{"team", system} {
		require.NoError(t, client.IgnoreNotFound(core.Namespaces().Delete(ctx, name, metav1.DeleteOptions{})))
		eventually(t, "namespace "+name+" is gone", func(ctx context.Context) (bool, error) {
			_, err := core.Namespaces().Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
	}
	eventually(t, "claims are gone", func(ctx context.Context) (bool, error) {
		claims, err := c.Client().ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(claims.Items) == 0, err
	})
}

// stored are all objects that the API server has, as "resource namespace/name", but for events,
// which it forgets itself.
func (c *cluster) stored(t *testing.T) map[string]bool {
	t.Helper()
	objects, err := metadata.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	lists, err := discovery.ServerPreferredResources(c.Client().Discovery())
	require.NoError(t, err)
	stored := map[string]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || resource.Name == "events" {
				continue
			}
			list, err := objects.Resource(version.WithResource(resource.Name)).List(t.Context(), metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue // Of a definition that is gone the server knows for a moment more.
			}
			require.NoError(t, err, resource.Name)
			for _, object := range list.Items {
				stored[strings.TrimSuffix(resource.Name+"."+version.Group, ".")+" "+strings.TrimPrefix(object.Namespace+"/"+object.Name, "/")] = true
			}
		}
	}
	return stored
}

// left are what the API server has that it had not before.
func (c *cluster) left(t *testing.T, before map[string]bool) []string {
	t.Helper()
	var left []string
	for object := range c.stored(t) {
		if !before[object] {
			left = append(left, object)
		}
	}
	slices.Sort(left)
	return left
}
