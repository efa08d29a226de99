// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topologydriver

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/features"

	"github.com/celset/celset/internal/machine"
	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

// startAPIServer starts a control plane with one node, and turns the feature gates on. The tests run in parallel, because they
// mostly wait until drivers have ended.
func startAPIServer(t *testing.T, gates ...string) kubernetes.Interface {
	t.Helper()
	t.Parallel()
	on := map[string]bool{}
	for _, gate := range gates {
		on[gate] = true
	}
	cp := env.Start(t, controlplane.Options{SkipKwok: true, SkipControllerManager: true, FeatureGates: on})
	env.Create(t, cp.Client().CoreV1().Nodes(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
	return cp.Client()
}

// published returns the devices that a driver has published, in the order of its slices. The result is empty while the slices
// are of different generations of the pool.
func published(t *testing.T, client kubernetes.Interface, driver string) (devices []resourceapi.Device) {
	t.Helper()
	generation := int64(0)
	list, err := client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{FieldSelector: "spec.driver=" + driver})
	require.NoError(t, err)
	for _, slice := range list.Items {
		require.Equal(t, node, *slice.Spec.NodeName)
		require.Equal(t, node, slice.Spec.Pool.Name)
		require.Equal(t, "Node", slice.OwnerReferences[0].Kind)
		if generation != 0 && slice.Spec.Pool.Generation != generation || len(list.Items) != int(slice.Spec.Pool.ResourceSliceCount) {
			return nil
		}
		generation = slice.Spec.Pool.Generation
		devices = append(devices, slice.Spec.Devices...)
	}
	return devices
}

// requirePublished waits until the drivers have published exactly the devices of a topology.
func requirePublished(t *testing.T, client kubernetes.Interface, want topology.Topology) {
	t.Helper()
	slices, err := want.ResourceSlices(node)
	require.NoError(t, err)
	for _, driver := range want.Drivers() {
		var expected []resourceapi.Device
		for _, slice := range slices {
			if slice.Spec.Driver == driver {
				expected = append(expected, slice.Spec.Devices...)
			}
		}
		diff := ""
		require.Eventually(t, func() bool {
			diff = cmp.Diff(expected, published(t, client, driver))
			return diff == ""
		}, 2*time.Minute, 100*time.Millisecond, "devices of %s", driver)
		require.Empty(t, diff)
	}
}

// TestWithAPIServer runs the tests that need an API server.
func TestWithAPIServer(t *testing.T) {
	client := startAPIServer(t)
	t.Run("publishing", func(t *testing.T) { testPublishing(t, client) })
	t.Run("kubelet", func(t *testing.T) { testKubelet(t, client) })
	t.Run("rolling update", func(t *testing.T) { testRollingUpdate(t, client) })
}

// TestMachinesWithAPIServer checks that an API server accepts the ResourceSlices of each machine.
func TestMachinesWithAPIServer(t *testing.T) {
	minor.NeedsGate(t, features.DRAListTypeAttributes)
	client := startAPIServer(t, string(features.DRAListTypeAttributes))
	for _, m := range machine.All() {
		t.Run(m.Name, func(t *testing.T) {
			f := newFixture(t, m.Topology(node))
			f.options.Client = client
			drivers := f.start(t)
			requirePublished(t, client, f.options.Topology)
			require.NoError(t, drivers.Healthy(httpRequest(t)))
			for _, class := range m.DeviceClasses() {
				_, err := client.ResourceV1().DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				require.NoError(t, err)
			}
		})
	}
}

// testPublishing checks that an API server accepts the published ResourceSlices.
func testPublishing(t *testing.T, client kubernetes.Interface) {
	t.Run("another topology", func(t *testing.T) {
		ring := func(devices int) topology.Topology {
			wired, err := Wiring{Kind: topology.Ring, Devices: devices, Driver: "other.example.com"}.Topology()
			require.NoError(t, err)
			return wired
		}
		f := newFixture(t, ring(8))
		f.options.Client = client
		drivers := f.start(t)
		requirePublished(t, client, ring(8))
		require.NoError(t, drivers.Publish(t.Context(), ring(5)))
		requirePublished(t, client, ring(5))

		drivers.Stop()
		require.Len(t, published(t, client, "other.example.com"), 5, "a driver that stops leaves its devices to the one that comes after it")

		f.options.Topology = ring(200)
		f.start(t)
		requirePublished(t, client, ring(200))
		f.options.Topology = ring(3)
		f.start(t)
		requirePublished(t, client, ring(3))
	})

	t.Run("lists without the feature gate", func(t *testing.T) {
		wired, err := Wiring{Kind: topology.HybridCubeMesh, Driver: "lists.example.com", PeerList: true}.Topology()
		require.NoError(t, err)
		f := newFixture(t, wired)
		f.options.Client = client
		drivers, err := Start(t.Context(), f.options)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		require.ErrorContains(t, drivers.Run(ctx), "driver lists.example.com: processing ResourceSlice objects",
			"somebody is told that a part of the devices is missing")
		require.NoFileExists(t, drivers.all[0].sockets.service)
	})
}

// httpRequest returns a request that ends with the test.
func httpRequest(t *testing.T) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", nil)
	require.NoError(t, err)
	return request
}

// createClaim creates a claim and writes its allocation, as a scheduler would.
func createClaim(t *testing.T, client kubernetes.Interface, claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	t.Helper()
	status := claim.Status
	claims := client.ResourceV1().ResourceClaims(claim.Namespace)
	created, err := claims.Create(t.Context(), claim, metav1.CreateOptions{})
	require.NoError(t, err)
	created.Status = status
	created, err = claims.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
	require.NoError(t, err)
	return created
}

// testKubelet acts as the kubelet: it calls a driver through its sockets, with claims that an API server stores.
func testKubelet(t *testing.T, client kubernetes.Interface) {
	f := newFixture(t, ring(t, 8))
	f.options.Client = client
	drivers := f.start(t)
	kubelet := newKubelet(t, drivers.all[0])

	require.ErrorContains(t, drivers.Ready(httpRequest(t)), "the kubelet has not registered the driver")
	kubelet.register(t, true)
	require.NoError(t, drivers.Ready(httpRequest(t)))
	kubelet.register(t, false)
	require.Error(t, drivers.Ready(httpRequest(t)))
	require.NoError(t, drivers.Healthy(httpRequest(t)))

	first := createClaim(t, client, allocatedClaim("first", "mla-2", "mla-3"))
	second := createClaim(t, client, allocatedClaim("second", "mla-3", "mla-4"))
	devices, message := kubelet.prepare(t, first)
	require.Empty(t, message)
	require.Len(t, devices, 2)
	require.Equal(t, []string{"mla"}, devices[0].RequestNames)
	require.Equal(t, []string{driver + "/device=" + string(first.UID) + "-mla-2"}, devices[0].CdiDeviceIds)
	require.FileExists(t, filepath.Join(f.options.CDIDir, driver+"-device_"+string(first.UID)+".json"))

	_, message = kubelet.prepare(t, second)
	require.Contains(t, message, "double allocation: device mla-3")
	require.Contains(t, message, "default/first")
	require.Contains(t, message, "default/second")

	// A stopped driver removes its sockets, and a killed driver leaves them. In both cases the next driver must work.
	drivers.Stop()
	require.Error(t, drivers.Healthy(httpRequest(t)))
	kubelet = newKubelet(t, f.start(t).all[0])
	_, message = kubelet.prepare(t, second)
	require.Contains(t, message, "default/first", "what was prepared is known after a restart")
	require.Empty(t, kubelet.unprepare(t, first))
	require.NoFileExists(t, filepath.Join(f.options.CDIDir, driver+"-device_"+string(first.UID)+".json"))
	_, message = kubelet.prepare(t, second)
	require.Empty(t, message)
	require.Empty(t, kubelet.unprepare(t, second))
	require.Empty(t, kubelet.unprepare(t, second))
}

// testRollingUpdate runs two drivers on one node, as during an update of a DaemonSet.
func testRollingUpdate(t *testing.T, client kubernetes.Interface) {
	f := newFixture(t, ring(t, 8))
	f.options.Client, f.options.PodUID = client, "old"
	before := f.start(t)
	f.options.PodUID = "new"
	after := f.start(t)
	older, newer := newKubelet(t, before.all[0]), newKubelet(t, after.all[0])

	claim := createClaim(t, client, allocatedClaim("claim", "mla-0"))
	other := createClaim(t, client, allocatedClaim("other", "mla-0"))
	_, message := older.prepare(t, claim)
	require.Empty(t, message)
	_, message = newer.prepare(t, other)
	require.Contains(t, message, "double allocation", "the new driver knows what the old one has done")
	require.Empty(t, newer.unprepare(t, claim))
	_, message = older.prepare(t, other)
	require.Empty(t, message, "and the other way round")

	before.Stop()
	require.NoError(t, after.Healthy(httpRequest(t)))
	require.NoFileExists(t, before.all[0].sockets.service)
	require.NoFileExists(t, before.all[0].sockets.registration)
	require.FileExists(t, after.all[0].sockets.registration)
}
