// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/controlplane"
)

// schedulerConfig is the default of --scheduler-config, below the module root.
const schedulerConfig = "manifests/scheduler/config.yaml"

// upFlags say which cluster to run.
type upFlags struct {
	binDir          string
	dataDir         string
	schedulerConfig string
}

func (f *upFlags) addTo(cmd *cobra.Command) {
	addBinDirFlag(cmd, &f.binDir)
	addDataDirFlag(cmd, &f.dataDir)
	cmd.Flags().StringVar(&f.schedulerConfig, "scheduler-config", "", "KubeSchedulerConfiguration of celset-scheduler; its clientConnection.kubeconfig is replaced (default "+schedulerConfig+" in the source tree)")
}

func addDataDirFlag(cmd *cobra.Command, dataDir *string) {
	cmd.Flags().StringVar(dataDir, "data-dir", "", "directory to keep the cluster's data in (default: a temporary one, removed at the end)")
}

func newUpCommand() *cobra.Command {
	return newCommand("up", "Run a cluster with celset-scheduler until interrupted", &upFlags{}, up)
}

// up returns nil when it was the context that ended the cluster.
func up(ctx context.Context, flags *upFlags, out, progress io.Writer) error {
	// For the user.
	cp, err := flags.start(ctx, progress, controlplane.Kubectl)
	if err != nil {
		return err
	}
	defer cp.Stop()
	if err := printUsage(out, cp); err != nil {
		return err
	}
	return cp.Wait(ctx)
}

// start builds what the cluster consists of, and further binaries, and starts it,
// celset-scheduler included. The caller stops it.
func (f *upFlags) start(ctx context.Context, progress io.Writer, binaries ...string) (*controlplane.ControlPlane, error) {
	config, err := f.schedulerConfigPath()
	if err != nil {
		return nil, err
	}
	binDir, err := controlplane.Build(ctx, f.binDir, progress, append(binaries, clusterBinaries...)...)
	if err != nil {
		return nil, err
	}
	return startCluster(ctx, controlplane.Options{BinDir: binDir, DataDir: f.dataDir, Progress: progress},
		controlplane.SchedulerOptions{ConfigFile: config})
}

var clusterBinaries = []string{
	controlplane.Etcd, controlplane.KubeAPIServer, controlplane.KubeControllerManager, controlplane.Kwok, controlplane.CelsetScheduler,
}

// startCluster starts a cluster from binaries that were built, and celset-scheduler in it. The caller stops it.
func startCluster(ctx context.Context, options controlplane.Options, scheduler controlplane.SchedulerOptions) (*controlplane.ControlPlane, error) {
	options.Prebuilt = true
	// Those of PodGroups, for sets of nodes.
	options.FeatureGates = podGroups()
	options.APIServerArgs = []string{"--runtime-config=scheduling.k8s.io/v1beta1=true"}
	cp, err := controlplane.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	scheduler.FeatureGates = podGroups()
	maps.Copy(scheduler.FeatureGates, map[string]bool{v1alpha1.FeatureGate: true, v1alpha1.GangFeatureGate: true, "DRADevicePreemption": true})
	if _, err := cp.StartScheduler(ctx, scheduler); err != nil {
		cp.Stop()
		return nil, err
	}
	return cp, nil
}

func podGroups() map[string]bool {
	return map[string]bool{"GenericWorkload": true, "TopologyAwareWorkloadScheduling": true}
}

// schedulerConfigPath fails on a file that does not exist: better than after
// minutes of building.
func (f *upFlags) schedulerConfigPath() (string, error) {
	path := f.schedulerConfig
	if path == "" {
		root, err := controlplane.ModuleRoot()
		if err != nil {
			return "", err
		}
		path = filepath.Join(root, schedulerConfig)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("scheduler configuration: %w", err)
	}
	return path, nil
}

func printUsage(out io.Writer, cp *controlplane.ControlPlane) error {
	_, err := fmt.Fprintf(out, `The cluster is up; interrupt (Ctrl-C) to stop it. It has no nodes yet: those that
carry the annotation %[1]s=%[2]s become ready, and their pods run.

  kubeconfig  %[3]s
  logs        %[4]s

  export KUBECONFIG=%[3]s
  %[5]s get namespaces
`, controlplane.KwokNodeAnnotation, controlplane.KwokNodeValue, cp.Kubeconfig(), cp.LogDir(), cp.Binary(controlplane.Kubectl))
	return err
}
