// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package program has the common parts of long-running commands: flags for the API server, addresses, logging and version, and
// the code that applies the flags. The scheduler does not use this package, because it has the flags of kube-scheduler.
//
//	type options struct {
//		program.Options
//		workers int
//	}
//
//	func (o *options) AddFlags(flags *pflag.FlagSet) {
//		o.Options.AddFlags(flags)
//		flags.IntVar(&o.workers, "workers", o.workers, "How many things are done at a time.")
//	}
//
//	func main() {
//		o := &options{Options: program.NewOptions(100, ":8443"), workers: 5}
//		program.Main(program.NewCommand("name", "What it does", o, func(ctx context.Context) error { return run(ctx, o) }))
//	}
package program

import (
	"context"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	_ "golang.org/x/crypto/x509roots/fallback" // root certificates, because images have none
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/celset/celset/internal/version"
)

// RegisterBuildInfo registers the metric celset_build_info with the versions of this program.
func RegisterBuildInfo(registry prometheus.Registerer) error {
	return version.RegisterBuildInfo(registry)
}

// Main runs the command and exits when the command ends. SIGINT or SIGTERM ends the context of the command. A second signal
// exits at once.
func Main(command *cobra.Command) {
	command.SetContext(ctrl.SetupSignalHandler())
	os.Exit(cli.Run(command))
}

// Flags are the options of a command: [Options], or a type that adds flags.
type Flags interface {
	AddFlags(flags *pflag.FlagSet)
	applyLogging() error
}

// NewCommand returns a command that takes no arguments. The command sets up logging, which is possible only once per process,
// and then calls run.
func NewCommand(use, short string, o Flags, run func(context.Context) error) *cobra.Command {
	command := &cobra.Command{
		Use:     use,
		Short:   short,
		Version: version.Text(),
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			command.SilenceUsage = true
			if err := o.applyLogging(); err != nil {
				return err
			}
			return run(command.Context())
		},
	}
	o.AddFlags(command.Flags())
	return command
}
