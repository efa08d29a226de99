// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topologydriver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// healthInterval is the time between two reports about the health of devices.
type healthInterval time.Duration

// defaultHealthInterval must be well below 30 seconds. If the kubelet gets no report for this time, it considers the health
// unknown.
const defaultHealthInterval = healthInterval(10 * time.Second)

// WatchHealthStatus reports all devices as healthy until its context ends, because simulated devices can't break. See
// [kubeletplugin.DRAPlugin].
func (d *Driver) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	ticker := time.NewTicker(time.Duration(d.healthEvery))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case reports <- d.healthReport(time.Now()):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (d *Driver) healthReport(now time.Time) kubeletplugin.DeviceHealthReport {
	var report kubeletplugin.DeviceHealthReport
	for name := range *d.devices.Load() {
		report.Devices = append(report.Devices, kubeletplugin.DeviceHealth{
			PoolName: d.node, DeviceName: name, Health: kubeletplugin.HealthStatusHealthy, LastUpdated: now,
		})
	}
	return report
}

// noteRegistration records whether the kubelet has accepted the driver's registration.
func (d *Driver) noteRegistration(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if status, ok := request.(*registerapi.RegistrationStatus); ok {
		d.registered.Store(status.PluginRegistered)
	}
	return handler(ctx, request)
}

// Ready returns an error until the kubelet has registered all drivers.
func (d *Drivers) Ready(*http.Request) error {
	for _, driver := range d.all {
		if !driver.registered.Load() {
			return fmt.Errorf("driver %s: the kubelet has not registered the driver: check that the kubelet watches %s", driver.name, driver.sockets.registryDir)
		}
	}
	return nil
}

// answerTimeout limits a call that checks a driver.
const answerTimeout = 5 * time.Second

// Healthy returns an error if a driver does not answer calls on its sockets.
func (d *Drivers) Healthy(request *http.Request) error {
	ctx, cancel := context.WithTimeout(request.Context(), answerTimeout)
	defer cancel()
	var errs []error
	for _, driver := range d.all {
		if err := driver.ask(ctx); err != nil {
			errs = append(errs, fmt.Errorf("driver %s: %w", driver.name, err))
		}
	}
	return errors.Join(errs...)
}

// ask calls the driver on both sockets: for its name, and to prepare an empty list of claims. The second call fails if the
// checkpoint is not readable.
func (d *Driver) ask(ctx context.Context) error {
	err := call(d.sockets.registration, func(connection grpc.ClientConnInterface) error {
		_, err := registerapi.NewRegistrationClient(connection).GetInfo(ctx, &registerapi.InfoRequest{})
		return err
	})
	if err != nil {
		return err
	}
	return call(d.sockets.service, func(connection grpc.ClientConnInterface) error {
		_, err := drapb.NewDRAPluginClient(connection).NodePrepareResources(ctx, &drapb.NodePrepareResourcesRequest{})
		return err
	})
}

// call connects to a socket, calls do, and closes the connection.
func call(socket string, do func(grpc.ClientConnInterface) error) error {
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	if err := errors.Join(do(connection), connection.Close()); err != nil {
		return fmt.Errorf("socket %s: %w", socket, err)
	}
	return nil
}
