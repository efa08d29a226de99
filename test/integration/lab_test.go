// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/topology"
)

// labLabel has the namespace of a lab as its value, on nodes and in the node
// selectors of pods.
const labLabel = "celset.dev/lab"

// cleanupTimeout is for the few requests that end a lab.
const cleanupTimeout = 30 * time.Second

// lab is where one test works. Its namespace has a generated name, which is part
// of the names of all that is not in a namespace.
type lab struct {
	namespace string
	nodes     []string
}

// newLab makes a namespace and n nodes. What the test creates through the lab goes
// when the test ends.
func newLab(t *testing.T, name string, n int) *lab {
	t.Helper()
	namespace, err := client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: name + "-",
		Labels:       map[string]string{resourceapi.DRAAdminNamespaceLabelKey: "true"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	l := &lab{namespace: namespace.Name}
	cleanup(t, func(ctx context.Context) error {
		return client().CoreV1().Namespaces().Delete(ctx, l.namespace, metav1.DeleteOptions{})
	})
	l.nodes, err = controlplane.CreateNodes(t.Context(), client(), n, controlplane.NodeOptions{
		Prefix: l.namespace,
		Labels: map[string]string{labLabel: l.namespace},
	})
	require.NoError(t, err)
	for _, node := range l.nodes {
		cleanup(t, func(ctx context.Context) error {
			return client().CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{})
		})
	}
	return l
}

// cleanup deletes an object when the test has ended.
func cleanup(t *testing.T, deletion func(context.Context) error) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), cleanupTimeout)
		defer cancel()
		if err := deletion(ctx); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("clean up: %v", err)
		}
	})
}

// family is a driver that only this lab has.
func (l *lab) family(prefix string) topology.Family {
	return topology.Family{Driver: prefix + "." + l.namespace + ".example.com", Prefix: prefix}
}

// ring publishes a ring of n devices on each node, with a class for them.
func (l *lab) ring(t *testing.T, n int) topology.Topology {
	t.Helper()
	return l.ringWith(t, n)
}

// ringWith is ring with configuration in the class.
func (l *lab) ringWith(t *testing.T, n int, config ...resourceapi.DeviceConfiguration) topology.Topology {
	t.Helper()
	ring, err := topology.NewRing(l.family("mla"), n)
	require.NoError(t, err)
	l.publish(t, ring, l.nodes...)
	l.createClass(t, ring.Drivers()[0], config...)
	return ring
}

// publish creates the ResourceSlices of nodes.
func (l *lab) publish(t *testing.T, devices topology.Topology, nodes ...string) {
	t.Helper()
	for _, node := range nodes {
		slices, err := devices.ResourceSlices(node)
		require.NoError(t, err)
		for _, slice := range slices {
			createSlice(t, slice)
		}
	}
}

func createSlice(t *testing.T, slice *resourceapi.ResourceSlice) {
	t.Helper()
	slice, err := client().ResourceV1().ResourceSlices().Create(t.Context(), slice, metav1.CreateOptions{})
	require.NoError(t, err)
	cleanup(t, func(ctx context.Context) error {
		return client().ResourceV1().ResourceSlices().Delete(ctx, slice.Name, metav1.DeleteOptions{})
	})
}

// createClass creates the class of a driver's devices, named like the driver.
func (l *lab) createClass(t *testing.T, driver string, config ...resourceapi.DeviceConfiguration) {
	t.Helper()
	l.createNamedClass(t, driver, driver, config...)
}

func (l *lab) createNamedClass(t *testing.T, name, driver string, config ...resourceapi.DeviceConfiguration) {
	t.Helper()
	spec := classOf(driver)
	for _, c := range config {
		spec.Config = append(spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: c})
	}
	l.createClassWithSpec(t, name, spec)
}

// classOf selects the devices of a driver.
func classOf(driver string) resourceapi.DeviceClassSpec {
	return resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{selector("device.driver == '" + driver + "'")}}
}

func (l *lab) createClassWithSpec(t *testing.T, name string, spec resourceapi.DeviceClassSpec) {
	t.Helper()
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	_, err := client().ResourceV1().DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{})
	require.NoError(t, err)
	cleanup(t, func(ctx context.Context) error {
		return client().ResourceV1().DeviceClasses().Delete(ctx, name, metav1.DeleteOptions{})
	})
}

// createClaim returns the claim as the API server stored it.
func (l *lab) createClaim(t *testing.T, name string, parts ...part) *resourceapi.ResourceClaim {
	t.Helper()
	claim, err := client().ResourceV1().ResourceClaims(l.namespace).Create(t.Context(), claimOf(name, parts...), metav1.CreateOptions{})
	require.NoError(t, err)
	return claim
}

// createPod creates a pod for the nodes of the lab that uses the claims.
func (l *lab) createPod(t *testing.T, name, profile string, claims ...string) {
	t.Helper()
	pod := podOf(name, profile, claims...)
	pod.Spec.NodeSelector = map[string]string{labLabel: l.namespace}
	l.createPodAsIs(t, pod)
}

// createPodOn creates a pod for one node that uses the claims.
func (l *lab) createPodOn(t *testing.T, node, name, profile string, claims ...string) {
	t.Helper()
	pod := podOf(name, profile, claims...)
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	l.createPodAsIs(t, pod)
}

func (l *lab) createPodAsIs(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	_, err := client().CoreV1().Pods(l.namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
}

// run creates a claim and a pod that uses it, of the same name.
func (l *lab) run(t *testing.T, name, profile string, parts ...part) {
	t.Helper()
	l.createClaim(t, name, parts...)
	l.createPod(t, name, profile, name)
}

// occupy has a pod of the stock profile use the named devices of one node, and
// returns its name when it runs.
func (l *lab) occupy(t *testing.T, node string, devices topology.Topology, names ...string) string {
	t.Helper()
	selected, err := devices.Select(names)
	require.NoError(t, err)
	var requests []part
	for _, device := range selected {
		requests = append(requests, one(device))
	}
	name := node + "-" + names[0]
	l.createClaim(t, name, requests...)
	l.createPodOn(t, node, name, stockProfile, name)
	l.requireRunning(t, name)
	require.ElementsMatch(t, names, l.devicesOf(t, name))
	return name
}

// deletePod deletes a pod at once.
func (l *lab) deletePod(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, client().CoreV1().Pods(l.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
}
