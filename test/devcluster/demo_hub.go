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
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/demo"
)

func runPlacementDemo(ctx context.Context, flags *hubFlags, out, progress io.Writer) error {
	cp, err := flags.start(ctx, progress, hubBinaries)
	if err != nil {
		return err
	}
	defer cp.Stop()
	return show(cp, out, func(options demo.Options) error { return demo.RunPlacement(ctx, options) })
}

func runFleetDemo(ctx context.Context, flags *hubFlags, out, progress io.Writer) error {
	start := time.Now()
	config, err := countingOften()
	if err != nil {
		return err
	}
	binDir, err := build(ctx, flags.binDir, progress, slices.Concat(clusterBinaries, []string{placementProgram})...)
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
		end() // makes all clusters stop at the same time
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
	fmt.Fprintf(progress, "they are up after %.1f s\n\n", time.Since(start).Seconds())
	return show(hub, out, func(options demo.Options) error { return demo.RunFleet(ctx, options, configs) })
}

// countingOften returns a configuration for schedulers that count sets of devices every eight seconds. A published number
// expires after three times as long.
func countingOften() ([]byte, error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return nil, err
	}
	config, err := os.ReadFile(filepath.Join(root, schedulerConfig))
	return bytes.ReplaceAll(config, []byte("fragmentationInterval: 5m"), []byte("fragmentationInterval: 8s")), err
}
