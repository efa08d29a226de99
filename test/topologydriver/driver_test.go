// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topologydriver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	healthapi "k8s.io/kubelet/pkg/apis/dra-health/v1"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/celset/celset/internal/topology"
)

func TestWiring(t *testing.T) {
	for _, test := range []struct {
		wiring  Wiring
		want    string
		devices string
		err     string
	}{
		{wiring: Wiring{Kind: topology.Ring, Devices: 4}, want: "ring of 4 mla.example.com", devices: "mla-0 mla-1 mla-2 mla-3"},
		{wiring: Wiring{Kind: topology.Ring, Devices: 3, Driver: "npu.test", Prefix: "n"}, want: "ring of 3 npu.test", devices: "n-0 n-1 n-2"},
		{wiring: Wiring{Kind: topology.Mesh, Rows: 1, Columns: 2}, want: "1x2 mesh of mesh.example.com", devices: "mesh-0 mesh-1"},
		{wiring: Wiring{Kind: topology.Torus, Rows: 2, Columns: 2}, want: "2x2 torus of mla.example.com", devices: "mla-0 mla-1 mla-2 mla-3"},
		{wiring: Wiring{Kind: topology.BridgePairs, Devices: 2}, want: "1 bridged pairs of mla.example.com", devices: "mla-0 mla-1"},
		{wiring: Wiring{Kind: topology.Couples, Devices: 4}, want: "2 couples of gpu.example.com and nic.example.com", devices: "gpu-0 gpu-1 nic-0 nic-1"},
		{wiring: Wiring{Kind: topology.Couples, Devices: 2, NICDriver: "eth.test", Prefix: "g"}, want: "1 couples of gpu.example.com and eth.test", devices: "g-0 eth-0"},
		{wiring: Wiring{Kind: topology.HybridCubeMesh, Prefix: "a", PeerList: true}, want: "hybrid cube mesh of 8 mla.example.com", devices: "a-0 a-1 a-2 a-3 a-4 a-5 a-6 a-7"},

		{wiring: Wiring{Kind: "star"}, err: `topology "star": must be one of ["ring" "mesh" "torus" "bridge-pairs" "couples" "hybrid-cube-mesh"]`},
		{wiring: Wiring{Kind: topology.Ring, Devices: 2}, err: "ring: devices: must be 3 to 4096, is 2"},
		{wiring: Wiring{Kind: topology.Couples, Devices: 3}, err: "couples: devices: must be an even number, is 3"},
		{wiring: Wiring{Kind: topology.Couples, Devices: 2, NICDriver: "gpu.test"}, err: `prefix "gpu": must not be that of both GPUs and NICs`},
		{wiring: Wiring{Kind: topology.Mesh, Rows: 2, Columns: 2, Driver: "Mesh"}, err: `mesh: driver "Mesh"`},
	} {
		wired, err := test.wiring.Topology()
		if test.err != "" {
			require.ErrorContains(t, err, test.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, test.want, wired.String())
		var names []string
		for _, device := range wired.Devices {
			names = append(names, device.Name)
		}
		require.Equal(t, test.devices, strings.Join(names, " "))
	}
}

func TestSockets(t *testing.T) {
	s, err := newSockets("/k", "mla.example.com", "")
	require.NoError(t, err)
	require.Equal(t, sockets{
		dataDir: "/k/plugins/mla.example.com", registryDir: "/k/plugins_registry",
		service: "/k/plugins/mla.example.com/dra.sock", registration: "/k/plugins_registry/mla.example.com-reg.sock",
	}, s)
	s, err = newSockets("/k", "mla.example.com", "1-2")
	require.NoError(t, err)
	require.Equal(t, "/k/plugins/mla.example.com/dra-1-2.sock", s.service)
	require.Equal(t, "/k/plugins_registry/mla.example.com-1-2-reg.sock", s.registration)
	s, err = newSockets("here", "mla.example.com", "")
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(s.service))

	_, err = newSockets("/"+strings.Repeat("k", 80), "mla.example.com", "")
	require.ErrorContains(t, err, "the path has 114 bytes, but the system allows at most 107: use a shorter kubelet directory")
	require.NotErrorIs(t, err, os.ErrNotExist)
}

func TestNoStart(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"driver celset.dev: the name is reserved for CEL device constraints": func(o *Options) {
			o.Topology, _ = topology.NewRing(topology.Family{Driver: "celset.dev", Prefix: "mla"}, 3)
		},
		`driver 1.test: driver name "1.test": must begin with a letter`: func(o *Options) {
			o.Topology, _ = topology.NewRing(topology.Family{Driver: "1.test", Prefix: "mla"}, 3)
		},
		`node name "Node"`:                        func(o *Options) { o.NodeName = "Node" },
		"driver mla.example.com: mkdir /dev/null": func(o *Options) { o.KubeletDir = "/dev/null" },
		"the system allows at most 107":           func(o *Options) { o.KubeletDir += strings.Repeat("/directory", 10) },
	} {
		f := newFixture(t, ring(t, 8))
		change(&f.options)
		_, err := Start(t.Context(), f.options)
		require.ErrorContains(t, err, name)
	}
}

// TestNoStartOfOne checks that if one of two drivers can't start, the other one is stopped again.
func TestNoStartOfOne(t *testing.T) {
	wired, err := Wiring{Kind: topology.Couples, Devices: 2}.Topology()
	require.NoError(t, err)
	f := newFixture(t, wired)
	broken := filepath.Join(f.options.KubeletDir, "plugins", "nic.example.com")
	require.NoError(t, os.MkdirAll(broken, 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(broken, "checkpoint.json"), []byte("?"), 0o600))
	_, err = Start(t.Context(), f.options)
	require.ErrorContains(t, err, "driver nic.example.com: checkpoint")
	entries, err := os.ReadDir(filepath.Join(f.options.KubeletDir, "plugins_registry"))
	require.NoError(t, err)
	require.Empty(t, entries, "sockets")
}

func TestPublishNothing(t *testing.T) {
	f := newFixture(t, ring(t, 8))
	drivers := f.start(t)
	other, err := Wiring{Kind: topology.Mesh, Rows: 2, Columns: 2}.Topology()
	require.NoError(t, err)
	require.ErrorContains(t, drivers.Publish(t.Context(), other), "2x2 mesh of mesh.example.com: has no devices of driver mla.example.com")
}

// TestErrorsInTheBackground checks that the driver counts recoverable errors, and that any other error ends the driver.
func TestErrorsInTheBackground(t *testing.T) {
	f := newFixture(t, ring(t, 8))
	for _, test := range []struct {
		err   error
		fatal bool
	}{
		{recoverable(apierrors.NewInternalError(errors.New("try again"))), false},
		{recoverable(apierrors.NewForbidden(schema.GroupResource{}, "name", errors.New("no right yet"))), false},
		{recoverable(apierrors.NewInvalid(schema.GroupKind{}, "name", nil)), true},
		{recoverable(&resourceslice.DroppedFieldsError{DesiredSlice: &resourceapi.ResourceSlice{}, ActualSlice: &resourceapi.ResourceSlice{}}), true},
		{errors.New("the socket is gone"), true},
	} {
		var failed []error
		d, err := f.options.newDriver(driver, func(err error) { failed = append(failed, err) })
		require.NoError(t, err)
		d.HandleError(t.Context(), test.err, "publishing")
		if !test.fatal {
			require.Empty(t, failed)
			continue
		}
		require.Len(t, failed, 1)
		require.ErrorIs(t, failed[0], test.err)
		require.ErrorContains(t, failed[0], "driver mla.example.com: publishing: ")
	}
	f.measured(t, `
		# HELP celset_topology_driver_publishing_failures_total [ALPHA] Number of failed writes of ResourceSlices.
		# TYPE celset_topology_driver_publishing_failures_total counter
		celset_topology_driver_publishing_failures_total{driver="mla.example.com"} 4
	`, "publishing_failures_total")
}

// recoverable returns an error that the helper library marks as recoverable.
func recoverable(err error) error { return fmt.Errorf("%w: %w", kubeletplugin.ErrRecoverable, err) }

// TestRun checks that Run returns when its context ends, even without an API server, and that it returns the first error.
func TestRun(t *testing.T) {
	f := newFixture(t, ring(t, 8))
	var err error
	f.options.Client, err = kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	require.NoError(t, err)
	for _, reasons := range [][]error{nil, {errors.New("one"), errors.New("two")}} {
		drivers, err := Start(t.Context(), f.options)
		require.NoError(t, err)
		require.NoError(t, drivers.Healthy(httpRequest(t)), "the kubelet need not wait")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, reason := range reasons {
			drivers.fail(reason)
		}
		if len(reasons) == 0 {
			time.AfterFunc(100*time.Millisecond, cancel)
		}
		err = drivers.Run(ctx)
		if len(reasons) == 0 {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, reasons[0])
		}
		require.NoFileExists(t, drivers.all[0].sockets.service)
	}
}

func TestHealthy(t *testing.T) {
	f := newFixture(t, ring(t, 8))
	drivers := f.start(t)
	d := drivers.all[0]
	require.NoError(t, drivers.Healthy(httpRequest(t)))

	require.NoError(t, os.WriteFile(d.checkpoint.Path(), []byte("{"), 0o600))
	require.ErrorContains(t, drivers.Healthy(httpRequest(t)), "checkpoint "+d.checkpoint.Path(), "a driver that can't prepare is not healthy")
	require.NoError(t, os.Remove(d.checkpoint.Path()))
	require.NoError(t, drivers.Healthy(httpRequest(t)))

	require.NoError(t, os.Remove(d.sockets.registration))
	require.ErrorContains(t, drivers.Healthy(httpRequest(t)), "driver mla.example.com: socket "+d.sockets.registration)
}

func TestDeviceHealth(t *testing.T) {
	f := newFixture(t, ring(t, 3))
	drivers := f.start(t)

	t.Run("over the socket", func(t *testing.T) {
		kubelet := newKubelet(t, drivers.all[0])
		stream, err := kubelet.health.NodeWatchResources(t.Context(), &healthapi.NodeWatchResourcesRequest{})
		require.NoError(t, err)
		response, err := stream.Recv()
		require.NoError(t, err)
		require.Len(t, response.Devices, 3)
		for _, device := range response.Devices {
			require.Equal(t, healthapi.HealthStatus_HEALTHY, device.Health)
			require.Equal(t, node, device.Device.PoolName)
		}
	})
	t.Run("again and again", func(t *testing.T) {
		d := f.driver(t)
		d.healthEvery = healthInterval(time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		reports, done := make(chan kubeletplugin.DeviceHealthReport), make(chan error, 1)
		go func() { done <- d.WatchHealthStatus(ctx, reports) }()
		first, second := <-reports, <-reports
		require.Len(t, first.Devices, 3)
		require.True(t, second.Devices[0].LastUpdated.After(first.Devices[0].LastUpdated))
		cancel()
		require.NoError(t, <-done)
	})
}

const (
	node   = "node-1"
	driver = defaultDriver
)

// A fixture is a node with directories and an API client, on which drivers are started and stopped.
type fixture struct {
	options  Options
	registry metrics.KubeRegistry
}

// newFixture returns a fixture with empty directories, and a fake client whose only object is the node.
func newFixture(t require.TestingT, wired topology.Topology) *fixture {
	// t.TempDir is unsuitable, because its path may be too long for a socket.
	dir, err := os.MkdirTemp("", "celset-")
	require.NoError(t, err)
	if cleaned, ok := t.(interface{ Cleanup(func()) }); ok {
		cleaned.Cleanup(func() { _ = os.RemoveAll(dir) })
	}
	f := &fixture{registry: metrics.NewKubeRegistry()}
	measured, err := NewMetrics(f.registry, wired.Drivers()...)
	require.NoError(t, err)
	f.options = Options{
		Topology: wired, NodeName: node, KubeletDir: dir + "/kubelet", CDIDir: dir + "/cdi", Metrics: measured,
		Client: fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}),
	}
	return f
}

// start starts the drivers and publishes their devices. The drivers stop at the end of the test.
func (f *fixture) start(t *testing.T) *Drivers {
	t.Helper()
	drivers, err := Start(context.WithoutCancel(t.Context()), f.options)
	require.NoError(t, err)
	t.Cleanup(drivers.Stop)
	require.NoError(t, drivers.Publish(t.Context(), f.options.Topology))
	return drivers
}

// driver returns a driver without a server. Tests call its methods directly.
func (f *fixture) driver(t require.TestingT) *Driver {
	d, err := f.options.newDriver(f.options.Topology.Drivers()[0], func(error) {})
	require.NoError(t, err)
	return d
}

func ring(t require.TestingT, devices int) topology.Topology {
	wired, err := Wiring{Kind: topology.Ring, Devices: devices}.Topology()
	require.NoError(t, err)
	return wired
}

// allocatedClaim returns a claim that is allocated with the devices.
func allocatedClaim(name string, devices ...string) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: "mla",
			Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: driver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(max(1, len(devices))),
			},
		}}}},
		Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{}},
	}
	for _, device := range devices {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
			resourceapi.DeviceRequestAllocationResult{Request: "mla", Driver: driver, Pool: node, Device: device})
	}
	return claim
}

// A kubelet calls a driver through the sockets, as the real kubelet does.
type kubelet struct {
	driver       drapb.DRAPluginClient
	health       healthapi.DRAResourceHealthClient
	registration registerapi.RegistrationClient
}

func newKubelet(t *testing.T, d *Driver) *kubelet {
	t.Helper()
	connect := func(socket string) *grpc.ClientConn {
		connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, connection.Close()) })
		return connection
	}
	registration := registerapi.NewRegistrationClient(connect(d.sockets.registration))
	info, err := registration.GetInfo(t.Context(), &registerapi.InfoRequest{})
	require.NoError(t, err)
	require.Equal(t, registerapi.DRAPlugin, info.Type)
	require.Equal(t, d.name, info.Name)
	require.Equal(t, d.sockets.service, info.Endpoint)
	service := connect(info.Endpoint)
	return &kubelet{drapb.NewDRAPluginClient(service), healthapi.NewDRAResourceHealthClient(service), registration}
}

// register tells the driver whether the kubelet has accepted its registration.
func (k *kubelet) register(t *testing.T, accepted bool) {
	t.Helper()
	_, err := k.registration.NotifyRegistrationStatus(t.Context(), &registerapi.RegistrationStatus{PluginRegistered: accepted})
	require.Equal(t, accepted, err == nil, err)
}

func messageOf(claim *resourceapi.ResourceClaim) *drapb.Claim {
	return &drapb.Claim{Namespace: claim.Namespace, Name: claim.Name, Uid: string(claim.UID)}
}

func (k *kubelet) prepare(t *testing.T, claim *resourceapi.ResourceClaim) (devices []*drapb.Device, message string) {
	t.Helper()
	response, err := k.driver.NodePrepareResources(t.Context(), &drapb.NodePrepareResourcesRequest{Claims: []*drapb.Claim{messageOf(claim)}})
	require.NoError(t, err)
	result, ok := response.Claims[string(claim.UID)]
	require.True(t, ok, "each claim has a result")
	return result.Devices, result.Error
}

func (k *kubelet) unprepare(t *testing.T, claim *resourceapi.ResourceClaim) (message string) {
	t.Helper()
	response, err := k.driver.NodeUnprepareResources(t.Context(), &drapb.NodeUnprepareResourcesRequest{Claims: []*drapb.Claim{messageOf(claim)}})
	require.NoError(t, err)
	result, ok := response.Claims[string(claim.UID)]
	require.True(t, ok, "each claim has a result")
	return result.Error
}

// backgroundOf returns the context of t if t has one, and context.Background otherwise.
func backgroundOf(t require.TestingT) context.Context {
	if with, ok := t.(interface{ Context() context.Context }); ok {
		return with.Context()
	}
	return context.Background()
}
