// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Command celset-placement keeps the PlacementDecisions of an Open Cluster Management
// hub as the Placements say: those with the annotation celset.dev/placement: "true",
// or with --all-placements every one that is not disabled. With --bindings it also
// turns rights of ServiceAccounts into ManagedClusterSetBindings, and with
// --debug-bind-address it tells why a Placement selects what it selects. See packages
// placement/controller, placement/binding, placement/metrics and placement/debug.
package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	command := newCommand()
	command.SetContext(ctrl.SetupSignalHandler())
	os.Exit(cli.Run(command))
}

func newCommand() *cobra.Command {
	o := newOptions()
	command := &cobra.Command{
		Use:   "celset-placement",
		Short: "Choose ManagedClusters for Placements and keep their PlacementDecisions",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			command.SilenceUsage = true
			if err := logsapi.ValidateAndApply(o.logging, nil); err != nil {
				return err
			}
			log.SetLogger(klog.Background())
			return run(command.Context(), o)
		},
	}
	o.addFlags(command.Flags())
	return command
}

// run runs the controllers until the context ends or leadership is lost.
func run(ctx context.Context, o *options) error {
	config, err := o.clientConfig()
	if err != nil {
		return err
	}
	mgr, err := o.manager(config)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
