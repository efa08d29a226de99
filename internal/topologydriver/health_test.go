// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topologydriver

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	healthapi "k8s.io/kubelet/pkg/apis/dra-health/v1"
)

func TestReady(t *testing.T) {
	f := newFixture(t, ring(t, 8))
	drivers := f.start(t)
	kubelet := newKubelet(t, drivers.all[0])
	require.ErrorContains(t, drivers.Ready(httpRequest(t)), "driver mla.example.com: the kubelet has not registered it: does it watch "+f.options.KubeletDir+"/plugins_registry?")
	kubelet.register(t, true)
	require.NoError(t, drivers.Ready(httpRequest(t)))
	kubelet.register(t, false)
	require.Error(t, drivers.Ready(httpRequest(t)))
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
