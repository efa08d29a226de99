// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/demo"
	"github.com/celset/celset/test/realnode"
	"github.com/celset/celset/test/story"
)

func newDemoRealCommand() *cobra.Command {
	return newCommand("real", "Run a cluster with a node that runs containers, show what one knows of its devices (Linux, as root)",
		&upFlags{}, runDemoReal)
}

func runDemoReal(ctx context.Context, flags *upFlags, out, progress io.Writer) (err error) {
	if err := realnode.Unavailable(); err != nil {
		return err
	}
	start := time.Now()
	binaries := append(controlplane.NodeBinaries(), controlplane.TopologyDriver)
	if _, err := build(ctx, flags.binDir, progress, binaries...); err != nil {
		return err
	}
	cp, err := flags.start(ctx, progress)
	if err != nil {
		return err
	}
	defer cp.Stop()
	node, err := realnode.Start(ctx, cp, realnode.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Stop()) }()
	driver, err := node.StartDriver(ctx, "driver", story.Ring().DriverFlags...)
	if err != nil {
		return err
	}
	defer driver.Stop()
	fmt.Fprintf(progress, "control plane, scheduler, node and driver are up after %.1f s\n\n", time.Since(start).Seconds())
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	return demo.RunReal(ctx, node.Name(), demo.Options{
		Config: cp.RESTConfig(), Examples: os.DirFS(filepath.Join(root, examples)), Out: out, Color: isTerminal(out),
	})
}
