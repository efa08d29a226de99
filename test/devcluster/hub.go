// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/demo"
	"github.com/celset/celset/test/hub"
)

const (
	placementProgram = "celset-placement"
	// placementUser is the user name of celset-placement's ServiceAccount. placementRBAC grants rights to it.
	placementUser = "system:serviceaccount:celset-system:celset-placement"
	// placementRBAC is the manifest with the rights of celset-placement, relative to the module root.
	placementRBAC = "manifests/placement/rbac.yaml"
)

var hubBinaries = []string{controlplane.Etcd, controlplane.KubeAPIServer, placementProgram}

// hubFlags holds the flags for the directories of a hub's binaries and data.
type hubFlags struct {
	binDir  string
	dataDir string
}

func (f *hubFlags) addTo(cmd *cobra.Command) {
	addBinDirFlag(cmd, &f.binDir)
	addDataDirFlag(cmd, &f.dataDir)
}

// options returns the options for a control plane of the hub or of a cluster. If --data-dir is set, the control plane's data is
// in its subdirectory name.
func (f *hubFlags) options(binDir, name string) controlplane.Options {
	options := controlplane.Options{BinDir: binDir, Prebuilt: true}
	if f.dataDir != "" {
		options.DataDir = filepath.Join(f.dataDir, name)
	}
	return options
}

func newUpHubCommand() *cobra.Command {
	return newCommand("hub", "Run a hub with 200 clusters and celset-placement until interrupted", &hubFlags{}, upHub)
}

func upHub(ctx context.Context, flags *hubFlags, out, progress io.Writer) error {
	cp, err := flags.start(ctx, progress, slices.Concat(forUsers, hubBinaries))
	if err != nil {
		return err
	}
	defer cp.Stop()
	if err := demo.FurnishHub(ctx, demo.Options{Config: cp.RESTConfig()}); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, `The hub is up; interrupt (Ctrl-C) to stop it. It has 200 clusters, and no Placements yet.
celset-placement decides all Placements; those in the namespace %q select from 160 clusters.

%s  kubectl get managedclusters --show-labels
`, demo.Team, usage(cp)); err != nil {
		return err
	}
	return cp.Wait(ctx)
}

// start builds the binaries and starts the hub. The caller must stop the hub.
func (f *hubFlags) start(ctx context.Context, progress io.Writer, binaries []string) (*controlplane.ControlPlane, error) {
	binDir, err := build(ctx, f.binDir, progress, binaries...)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(progress, "starting a hub, and registering 200 clusters: about ten seconds")
	options := f.options(binDir, "")
	options.Progress = progress
	return startHub(ctx, options)
}

// startHub starts an API server with the CRDs and users of a hub, and celset-placement. The hub runs no pods. The caller must
// stop the hub.
func startHub(ctx context.Context, options controlplane.Options, users ...string) (*controlplane.ControlPlane, error) {
	options.SkipKwok, options.SkipControllerManager = true, true
	for _, name := range append(users, placementUser) {
		options.Users = append(options.Users, controlplane.User{Name: name})
	}
	cp, err := controlplane.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	if err := hub.Install(ctx, cp.RESTConfig()); err != nil {
		cp.Stop()
		return nil, err
	}
	if err := runPlacement(ctx, cp); err != nil {
		cp.Stop()
		return nil, err
	}
	return cp, nil
}

// runPlacement starts celset-placement with the RBAC rights in placementRBAC.
func runPlacement(ctx context.Context, cp *controlplane.ControlPlane) error {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	rights, err := os.ReadFile(filepath.Join(root, placementRBAC))
	if err != nil {
		return err
	}
	if _, err := controlplane.Apply(ctx, cp.RESTConfig(), rights, controlplane.ApplyOptions{}); err != nil {
		return err
	}
	kubeconfig, err := cp.KubeconfigFor(placementUser)
	if err != nil {
		return err
	}
	ports, err := controlplane.FreePorts(1)
	if err != nil {
		return err
	}
	health := fmt.Sprintf("localhost:%d", ports[0])
	_, err = cp.StartProgram(ctx, controlplane.Program{
		Name: placementProgram, Binary: placementProgram, Grace: 2 * time.Second, Endpoint: "http://" + health,
		Args: []string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--all-placements", "--health-probe-bind-address=" + health, "--metrics-bind-address=0"},
		Ready: func(ctx context.Context, _ *controlplane.Process) error {
			return controlplane.Probe(ctx, "http://"+health+"/readyz")
		},
	})
	return err
}
