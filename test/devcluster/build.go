// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/celset/celset/test/controlplane"
)

func newBuildCommand() *cobra.Command {
	var binDir string
	cmd := &cobra.Command{
		Use:   "build [name]...",
		Short: "Build the binaries of the cluster and of this module",
		Long: `Build brings binaries up to date: etcd, kube-apiserver, kube-controller-manager,
kubectl, kwok and the commands of this module, or only the named ones. Those of a
node that runs containers are built by name only: kubelet, containerd, runc and
others. The first time takes some minutes, later ones as long as what changed.`,
		RunE: func(cmd *cobra.Command, names []string) error {
			dir, err := controlplane.Build(cmd.Context(), binDir, cmd.ErrOrStderr(), names...)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "binaries are in %s\n", dir)
			return err
		},
	}
	addBinDirFlag(cmd, &binDir)
	return cmd
}

// build builds the programs of a cluster if they are out of date. It first prints how long that may take.
func build(ctx context.Context, binDir string, progress io.Writer, names ...string) (string, error) {
	fmt.Fprintln(progress, "compiling what has changed: about ten minutes the first time, some seconds later")
	return controlplane.Build(ctx, binDir, progress, names...)
}

func addBinDirFlag(cmd *cobra.Command, binDir *string) {
	cmd.Flags().StringVar(binDir, "bin-dir", "", "directory of the binaries (default $"+controlplane.BinDirEnv+", or bin in the source tree)")
}
