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
	"golang.org/x/term"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/demo"
	"github.com/celset/celset/test/realnode"
	"github.com/celset/celset/test/story"
)

// examples is the folder of the example manifests, relative to the module root.
const examples = "manifests/examples"

func newDemoCommand() *cobra.Command {
	cmd := newCommand("demo", "Run a cluster, schedule pods that want connected devices, draw what they got", &upFlags{}, runDemo)
	cmd.AddCommand(
		newCommand("placement", "Run a hub with 200 clusters, and select some in many ways", &hubFlags{}, runPlacementDemo),
		newCommand("fleet", "Run a hub and three clusters, and select one by totals and one by sets of devices", &hubFlags{}, runFleetDemo),
		newCommand("real", "Run a cluster with a node that runs containers, and show the devices of a container (Linux, as root)", &upFlags{}, runRealDemo),
	)
	return cmd
}

// show runs a demo on a control plane, and prints how long it took.
func show(cp *controlplane.ControlPlane, out io.Writer, run func(demo.Options) error) error {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := run(demo.Options{
		Config: cp.RESTConfig(), Examples: os.DirFS(filepath.Join(root, examples)), Out: out, Color: isTerminal(out),
	}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "The demo took %.1f s.\n", time.Since(start).Seconds())
	return err
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

func runDemo(ctx context.Context, flags *upFlags, out, progress io.Writer) error {
	start := time.Now()
	cp, err := flags.start(ctx, progress)
	if err != nil {
		return err
	}
	defer cp.Stop()
	fmt.Fprintf(progress, "control plane and scheduler are up after %.1f s\n\n", time.Since(start).Seconds())
	return show(cp, out, func(options demo.Options) error { return demo.Run(ctx, options) })
}

func runRealDemo(ctx context.Context, flags *upFlags, out, progress io.Writer) (err error) {
	if err := realnode.Unavailable(); err != nil {
		return err
	}
	start := time.Now()
	if _, err := build(ctx, flags.binDir, progress, append(controlplane.NodeBinaries(), controlplane.TopologyDriver)...); err != nil {
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
	return show(cp, out, func(options demo.Options) error { return demo.RunReal(ctx, node.Name(), options) })
}
