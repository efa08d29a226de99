// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/topology"
)

// LabLabel has the namespace of a lab as its value, on nodes and in the node selectors of pods.
const LabLabel = "celset.dev/lab"

// cleanupTimeout is for the few requests that end a lab.
const cleanupTimeout = 2 * time.Minute

// Lab is where one test works, beside others. Its namespace has a generated name, which is part of
// the names of all that is not in a namespace.
type Lab struct {
	*Env
	Namespace string
	Nodes     []string
}

// NewLab makes a namespace and n nodes. What the test creates through the lab goes when the test
// ends.
func (e *Env) NewLab(t testing.TB, name string, n int) *Lab {
	t.Helper()
	l := &Lab{Env: e}
	l.Namespace = Create(t, e.Client().CoreV1().Namespaces(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: name + "-", Labels: map[string]string{resourceapi.DRAAdminNamespaceLabelKey: "true"},
	}}).Name
	var err error
	l.Nodes, err = controlplane.CreateNodes(t.Context(), e.Client(), n, controlplane.NodeOptions{
		Prefix: l.Namespace, Labels: map[string]string{LabLabel: l.Namespace}, Static: e.static,
	})
	require.NoError(t, err)
	for _, node := range l.Nodes {
		CleanUp(t, func(ctx context.Context) error {
			return e.Client().CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{})
		})
	}
	return l
}

// CleanUp deletes an object when the test has ended, unless it is gone.
func CleanUp(t testing.TB, deletion func(context.Context) error) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), cleanupTimeout)
		defer cancel()
		if err := deletion(ctx); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("clean up: %v", err)
		}
	})
}

// Objects are those of a kind, in a namespace if they have one.
type Objects[T metav1.Object] interface {
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// Create creates an object for the time of the test, and returns it as the API server stored it.
func Create[T metav1.Object](t testing.TB, in Objects[T], object T) T {
	t.Helper()
	created, err := in.Create(t.Context(), object, metav1.CreateOptions{})
	require.NoError(t, err)
	CleanUp(t, func(ctx context.Context) error { return in.Delete(ctx, created.GetName(), metav1.DeleteOptions{}) })
	return created
}

// Publish creates the ResourceSlices of nodes.
func (e *Env) Publish(t testing.TB, devices topology.Topology, nodes ...string) {
	t.Helper()
	for _, node := range nodes {
		slices, err := devices.ResourceSlices(node)
		require.NoError(t, err)
		for _, slice := range slices {
			e.CreateSlice(t, slice)
		}
	}
}

// CreateSlice creates a ResourceSlice.
func (e *Env) CreateSlice(t testing.TB, slice *resourceapi.ResourceSlice) {
	t.Helper()
	Create(t, e.Client().ResourceV1().ResourceSlices(), slice)
}

// CreateClass creates the class of a driver's devices, named like the driver.
func (e *Env) CreateClass(t testing.TB, driver string, config ...resourceapi.DeviceConfiguration) {
	t.Helper()
	e.CreateNamedClass(t, driver, driver, config...)
}

// CreateNamedClass creates one with another name.
func (e *Env) CreateNamedClass(t testing.TB, name, driver string, config ...resourceapi.DeviceConfiguration) {
	t.Helper()
	spec := ClassOf(driver)
	for _, c := range config {
		spec.Config = append(spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: c})
	}
	e.CreateClassWithSpec(t, name, spec)
}

// ClassOf selects the devices of a driver.
func ClassOf(driver string) resourceapi.DeviceClassSpec {
	return resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{Selector("device.driver == '" + driver + "'")}}
}

// CreateClassWithSpec creates any class.
func (e *Env) CreateClassWithSpec(t testing.TB, name string, spec resourceapi.DeviceClassSpec) {
	t.Helper()
	Create(t, e.Client().ResourceV1().DeviceClasses(), &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
}

// Family is a driver that only this lab has.
func (l *Lab) Family(prefix string) topology.Family {
	return topology.Family{Driver: prefix + "." + l.Namespace + ".example.com", Prefix: prefix}
}

// Ring publishes a ring of n devices on each node, with a class for them, which may have
// configuration.
func (l *Lab) Ring(t testing.TB, n int, config ...resourceapi.DeviceConfiguration) topology.Topology {
	t.Helper()
	ring, err := topology.NewRing(l.Family("mla"), n)
	require.NoError(t, err)
	l.Publish(t, ring, l.Nodes...)
	l.CreateClass(t, ring.Drivers()[0], config...)
	return ring
}

// CreateClaim returns the claim as the API server stored it.
func (l *Lab) CreateClaim(t testing.TB, name string, parts ...Part) *resourceapi.ResourceClaim {
	t.Helper()
	claim, err := l.Client().ResourceV1().ResourceClaims(l.Namespace).Create(t.Context(), Claim(name, parts...), metav1.CreateOptions{})
	require.NoError(t, err)
	return claim
}

// CreatePod creates a pod for the nodes of the lab that uses the claims.
func (l *Lab) CreatePod(t testing.TB, name, profile string, claims ...string) {
	t.Helper()
	pod := Pod(name, profile, claims...)
	pod.Spec.NodeSelector = map[string]string{LabLabel: l.Namespace}
	l.CreatePodAsIs(t, pod)
}

// CreatePodOn creates a pod for one node that uses the claims.
func (l *Lab) CreatePodOn(t testing.TB, node, name, profile string, claims ...string) {
	t.Helper()
	pod := Pod(name, profile, claims...)
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	l.CreatePodAsIs(t, pod)
}

// CreatePodAsIs creates any pod.
func (l *Lab) CreatePodAsIs(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	_, err := l.pods().Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
}

// Run creates a claim and a pod that uses it, of the same name.
func (l *Lab) Run(t testing.TB, name, profile string, parts ...Part) {
	t.Helper()
	l.CreateClaim(t, name, parts...)
	l.CreatePod(t, name, profile, name)
}

// Occupy has a pod use the named devices of one node, and returns its name when it runs.
func (l *Lab) Occupy(t testing.TB, node string, devices topology.Topology, names ...string) string {
	t.Helper()
	return l.OccupyAs(t, StockProfile, node, devices, names...)
}

// OccupyAs does it with a pod of a profile.
func (l *Lab) OccupyAs(t testing.TB, profile, node string, devices topology.Topology, names ...string) string {
	t.Helper()
	selected, err := devices.Select(names)
	require.NoError(t, err)
	var requests []Part
	for _, device := range selected {
		requests = append(requests, One(device))
	}
	name := node + "-" + names[0]
	l.CreateClaim(t, name, requests...)
	l.CreatePodOn(t, node, name, profile, name)
	l.RequireRunning(t, name)
	require.ElementsMatch(t, names, l.DevicesOf(t, name))
	return name
}

// DeletePod deletes a pod at once.
func (l *Lab) DeletePod(t testing.TB, name string) {
	t.Helper()
	options := metav1.DeleteOptions{}
	if l.static {
		options.GracePeriodSeconds = ptr.To[int64](0)
	}
	require.NoError(t, l.pods().Delete(t.Context(), name, options))
}

func (l *Lab) pods() typedcorev1.PodInterface { return l.Client().CoreV1().Pods(l.Namespace) }
