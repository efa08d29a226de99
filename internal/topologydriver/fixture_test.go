// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topologydriver

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics"
	healthapi "k8s.io/kubelet/pkg/apis/dra-health/v1"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/celset/celset/internal/topology"
)

const (
	node   = "node-1"
	driver = defaultDriver
)

// fixture is a machine on which drivers come and go.
type fixture struct {
	options  Options
	registry metrics.KubeRegistry
}

// newFixture is one with empty directories and a client that knows the node only.
func newFixture(t require.TestingT, wired topology.Topology) *fixture {
	// Paths of sockets are short, which those of t.TempDir are not.
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

// start starts drivers that stop with the test, and publishes.
func (f *fixture) start(t *testing.T) *Drivers {
	t.Helper()
	drivers, err := Start(context.WithoutCancel(t.Context()), f.options)
	require.NoError(t, err)
	t.Cleanup(drivers.Stop)
	require.NoError(t, drivers.Publish(t.Context(), f.options.Topology))
	return drivers
}

// driver is one that only its methods are called of, without sockets.
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

// allocatedClaim is a claim that was given devices of the node.
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

// kubelet calls a driver through its sockets.
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

// register tells what the kubelet makes of the driver.
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

// backgroundOf is the context of a test, if it has one.
func backgroundOf(t require.TestingT) context.Context {
	if with, ok := t.(interface{ Context() context.Context }); ok {
		return with.Context()
	}
	return context.Background()
}
