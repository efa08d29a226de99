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

const placementProgram = "celset-placement"

func newUpHubCommand() *cobra.Command {
	return newCommand("hub", "Run a hub with 200 clusters and celset-placement until interrupted", &hubFlags{}, upHub)
}

// upHub runs the hub of the demo, with the program in place of a controller in this process.
func upHub(ctx context.Context, flags *hubFlags, out, progress io.Writer) error {
	binDir, err := build(ctx, flags.binDir, progress, append([]string{controlplane.Etcd, controlplane.KubeAPIServer, placementProgram}, forUsers...)...)
	if err != nil {
		return err
	}
	fmt.Fprintln(progress, "starting the hub, and registering its clusters: about ten seconds")
	options := flags.options(binDir, "")
	options.Progress = progress
	cp, err := startHub(ctx, options)
	if err != nil {
		return err
	}
	defer cp.Stop()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	rbac, err := os.ReadFile(filepath.Join(root, placementRBAC))
	if err != nil {
		return err
	}
	if err := placement.Furnish(ctx, placement.Options{Config: cp.RESTConfig(), Controller: cp.RESTConfig(), RBAC: rbac}); err != nil {
		return err
	}
	if err := runPlacement(ctx, cp); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, `The hub is up; interrupt (Ctrl-C) to stop it. It has 200 clusters, and no Placements yet.
celset-placement decides all Placements; those in the namespace %q select from 160 clusters.

%s  kubectl get managedclusters --show-labels
`, placement.Namespace, usage(cp)); err != nil {
		return err
	}
	return cp.Wait(ctx)
}

// runPlacement starts celset-placement with the rights that it is deployed with.
func runPlacement(ctx context.Context, cp *controlplane.ControlPlane) error {
	kubeconfig, err := cp.KubeconfigFor(placement.User)
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
