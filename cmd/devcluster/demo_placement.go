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

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/demo/placement"
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
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	rbac, err := os.ReadFile(filepath.Join(root, placementRBAC))
	if err != nil {
		return err
	}
	cp, err := flags.start(ctx, progress)
	if err != nil {
		return err
	}
	defer cp.Stop()
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
	err = placement.Run(ctx, placement.Options{
		Config: cp.RESTConfig(), Controller: config, RBAC: rbac, Out: out, Log: log,
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "The demo took %.1f s.\n", time.Since(start).Seconds())
	return err
}

// start builds and starts what a hub needs: an API server. No workload runs on it.
func (f *hubFlags) start(ctx context.Context, progress io.Writer) (*controlplane.ControlPlane, error) {
	binDir, err := controlplane.Build(ctx, f.binDir, progress, controlplane.Etcd, controlplane.KubeAPIServer)
	if err != nil {
		return nil, err
	}
	return controlplane.Start(ctx, controlplane.Options{
		BinDir: binDir, Prebuilt: true, DataDir: f.dataDir, Progress: progress,
		SkipKwok: true, SkipControllerManager: true,
		Users: []controlplane.User{{Name: placement.User}},
	})
}
