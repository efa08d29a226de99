// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Command celset-topology-driver is a DRA driver for devices that don't exist: a ring, a
// mesh or another topology, which a scheduler allocates from and containers are told of.
// It runs on each node. See package internal/topologydriver and docs/topology-driver.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/component-base/cli"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/component-base/version/verflag"

	"github.com/celset/celset/internal/topologydriver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	command := newCommand()
	command.SetContext(ctx)
	os.Exit(cli.Run(command))
}

func newCommand() *cobra.Command {
	o := newOptions()
	command := &cobra.Command{
		Use:   "celset-topology-driver",
		Short: "Publish generated devices of a node, and prepare claims of them",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			command.SilenceUsage = true
			if err := logsapi.ValidateAndApply(o.logging, nil); err != nil {
				return err
			}
			return run(command.Context(), o)
		},
	}
	o.addFlags(command.Flags())
	return command
}

// run serves until the context ends, which is no error, or a driver can't go on.
func run(ctx context.Context, o *options) error {
	config, err := o.config()
	if err != nil {
		return err
	}
	drivers, err := topologydriver.Start(ctx, config)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return drivers.Run(ctx) })
	group.Go(func() error { return serve(ctx, "--health-probe-bind-address", o.health, probes(drivers)) })
	group.Go(func() error { return serve(ctx, "--metrics-bind-address", o.metrics, metricsPage()) })
	return group.Wait()
}
