// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Command celset-webhook refuses ResourceClaims, ResourceClaimTemplates and DeviceClasses
// with mistakes in their CEL device constraints, and warns of pods that no scheduler would
// serve. With --placements it refuses misconfigured Placements, too. Every replica
// answers. See packages admission and placement/admission.
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
		Use:   "celset-webhook",
		Short: "Check CEL device constraints, and Placements, before they are stored",
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

// run answers until the context ends.
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
