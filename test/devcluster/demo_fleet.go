// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/demo"
	"github.com/celset/celset/test/demo/placement"
)

func newDemoFleetCommand() *cobra.Command {
	return newCommand("fleet", "Run a hub and three clusters, select one by totals and one by sets of devices, check where a pod runs", &hubFlags{}, runFleetDemo)
}

func runFleetDemo(ctx context.Context, flags *hubFlags, out, progress io.Writer) error {
	begin := time.Now()
	config, err := countingOften()
	if err != nil {
		return err
	}
	binDir, err := build(ctx, flags.binDir, progress, clusterBinaries...)
	if err != nil {
		return err
	}
	fmt.Fprintln(progress, "starting a hub and three clusters: about half a minute")
	names := demo.FleetClusters()
	hub, err := startHub(ctx, flags.options(binDir, "hub"), names...)
	if err != nil {
		return err
	}
	defer hub.Stop()
	clusters, configs := make([]*controlplane.ControlPlane, len(names)), make([]*rest.Config, len(names))
	ctx, end := context.WithCancel(ctx)
	defer func() {
		end() // all of them at once
		for _, cp := range clusters {
			if cp != nil {
				cp.Stop()
			}
		}
	}()
	var group errgroup.Group
	for i, name := range names {
		group.Go(func() error {
			kubeconfig, err := hub.KubeconfigFor(name)
			if err != nil {
				return err
			}
			clusters[i], err = startCluster(ctx, flags.options(binDir, name), controlplane.SchedulerOptions{
				Config: config, Args: []string{"--hub-kubeconfig=" + kubeconfig, "--cluster-name=" + name},
			})
			if err != nil {
				return fmt.Errorf("cluster %s: %w", name, err)
			}
			configs[i] = clusters[i].RESTConfig()
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	fmt.Fprintf(progress, "they are up after %.1f s\n\n", time.Since(begin).Seconds())
	return tellOnHub(hub, out, func(options placement.Options) error {
		return demo.RunFleet(ctx, options, configs, isTerminal(out))
	})
}

// countingOften is the configuration of the schedulers, but that they count sets of devices every few
// seconds. What is published holds for three times as long, which is longer than it takes to be renewed.
func countingOften() ([]byte, error) {
	const usual, often = "fragmentationInterval: 5m", "fragmentationInterval: 8s"
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return nil, err
	}
	config, err := os.ReadFile(filepath.Join(root, schedulerConfig))
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(config, []byte(usual)) {
		return nil, fmt.Errorf("%s: no %q to be changed", schedulerConfig, usual)
	}
	return bytes.ReplaceAll(config, []byte(usual), []byte(often)), nil
}
