// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Devcluster runs a local Kubernetes control plane with celset-scheduler, built from the modules that go.mod pins. Package
// test/controlplane documents its parts and the differences from a production cluster.
//
//	devcluster build             build the binaries into bin/
//	devcluster up                run a cluster until interrupted
//	devcluster up hub            run a hub with clusters to select from until interrupted
//	devcluster demo              run a cluster, show what celset is for
//	devcluster demo placement    the same for the selection of clusters, on a hub
//	devcluster demo fleet        the same for both, on a hub and in three clusters
//	devcluster demo real         the same up to a container, on a node (Linux, as root)
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal, restore the default handling. A second signal then ends the program at once, even if stopping hangs.
	context.AfterFunc(ctx, stop)
	if err := newRootCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "devcluster: %v\n", err)
		os.Exit(1)
	}
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "devcluster",
		Short:         "A local Kubernetes control plane with celset-scheduler",
		SilenceUsage:  true,
		SilenceErrors: true, // main prints errors itself
	}
	root.AddCommand(newBuildCommand(), newUpCommand(), newDemoCommand())
	return root
}

// newCommand returns a command that takes no arguments, with flags. run writes its results to out.
func newCommand[F interface{ addTo(*cobra.Command) }](use, short string, flags F, run func(ctx context.Context, flags F, out, progress io.Writer) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), flags, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags.addTo(cmd)
	return cmd
}
