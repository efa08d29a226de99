// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Command celset-topology-driver is a DRA driver for devices that don't exist: a ring, a mesh or another topology. A scheduler
// can allocate the devices, and containers get environment variables with the names of their devices. The driver runs on each
// node. See package topologydriver and docs/topology-driver.md.
package main

import (
	"context"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/celset/celset/internal/program"
	"github.com/celset/celset/test/topologydriver"
)

func main() { program.Main(newCommand(newOptions())) }

func newCommand(o *options) *cobra.Command {
	return program.NewCommand("celset-topology-driver", "Publish simulated devices of a node, and prepare claims for them", o,
		func(ctx context.Context) error { return run(ctx, o) })
}

// run runs the drivers until the context ends or a driver fails. If the context ends, it returns nil.
func run(ctx context.Context, o *options) error {
	config, err := o.config()
	if err != nil {
		return err
	}
	if err := program.RegisterBuildInfo(legacyregistry.Registerer()); err != nil {
		return err
	}
	drivers, err := topologydriver.Start(ctx, config)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return drivers.Run(ctx) })
	group.Go(func() error { return serve(ctx, "--health-probe-bind-address", o.Health, probes(drivers)) })
	group.Go(func() error { return serve(ctx, "--metrics-bind-address", o.Metrics, metricsPage()) })
	return group.Wait()
}
