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

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/demo/placement"
)

// placementRBAC has the rights of celset-placement, below the module root.
const placementRBAC = "manifests/placement/rbac.yaml"

// hubFlags say where the parts of a hub are.
type hubFlags struct {
	binDir  string
	dataDir string
}

func (f *hubFlags) addTo(cmd *cobra.Command) {
	addBinDirFlag(cmd, &f.binDir)
	addDataDirFlag(cmd, &f.dataDir)
}

func newDemoPlacementCommand() *cobra.Command {
	return newCommand("placement", "Run a hub with 200 clusters, select some in many ways, check which", &hubFlags{}, runPlacementDemo)
}

func runPlacementDemo(ctx context.Context, flags *hubFlags, out, progress io.Writer) error {
	binDir, err := build(ctx, flags.binDir, progress, controlplane.Etcd, controlplane.KubeAPIServer)
	if err != nil {
		return err
	}
	fmt.Fprintln(progress, "starting a hub, and registering 200 clusters: about ten seconds")
	options := flags.options(binDir, "")
	options.Progress = progress
	cp, err := startHub(ctx, options)
	if err != nil {
		return err
	}
	defer cp.Stop()
	return tellOnHub(cp, out, func(options placement.Options) error { return placement.Run(ctx, options) })
}

// options are those of a control plane whose data, if it is to stay, is in a folder of that name.
func (f *hubFlags) options(binDir, name string) controlplane.Options {
	options := controlplane.Options{BinDir: binDir, Prebuilt: true}
	if f.dataDir != "" {
		options.DataDir = filepath.Join(f.dataDir, name)
	}
	return options
}

// startHub starts what a hub needs: an API server with these users besides the controller's. No
// workload runs on it.
func startHub(ctx context.Context, options controlplane.Options, users ...string) (*controlplane.ControlPlane, error) {
	options.SkipKwok, options.SkipControllerManager = true, true
	for _, name := range append(users, placement.User) {
		options.Users = append(options.Users, controlplane.User{Name: name})
	}
	return controlplane.Start(ctx, options)
}

// tellOnHub runs a demo on a hub, and says how long it took.
func tellOnHub(cp *controlplane.ControlPlane, out io.Writer, tell func(placement.Options) error) error {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	rbac, err := os.ReadFile(filepath.Join(root, placementRBAC))
	if err != nil {
		return err
	}
	config, err := cp.RESTConfigFor(placement.User)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(cp.LogDir(), "celset-placement.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	start := time.Now()
	if err := tell(placement.Options{Config: cp.RESTConfig(), Controller: config, RBAC: rbac, Out: out, Log: log}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "The demo took %.1f s.\n", time.Since(start).Seconds())
	return err
}
