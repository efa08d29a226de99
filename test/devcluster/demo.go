// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/demo"
)

// examples is the folder of the example manifests, below the module root.
const examples = "manifests/examples"

func newDemoCommand() *cobra.Command {
	cmd := newCommand("demo", "Run a cluster, schedule pods that want connected devices, check what they got", &upFlags{}, runDemo)
	cmd.AddCommand(newDemoFleetCommand(), newDemoPlacementCommand(), newDemoRealCommand())
	return cmd
}

func runDemo(ctx context.Context, flags *upFlags, out, progress io.Writer) error {
	start := time.Now()
	cp, err := flags.start(ctx, progress)
	if err != nil {
		return err
	}
	defer cp.Stop()
	fmt.Fprintf(progress, "control plane and scheduler are up after %.1f s\n\n", time.Since(start).Seconds())
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	start = time.Now()
	err = demo.Run(ctx, demo.Options{
		Config:   cp.RESTConfig(),
		Examples: os.DirFS(filepath.Join(root, examples)),
		Out:      out,
		Color:    isTerminal(out),
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "The demo took %.1f s.\n", time.Since(start).Seconds())
	return err
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
