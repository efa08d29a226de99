// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"io/fs"
	"path"
	"time"

	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/story"
)

// chips is the family of devices in the act with DeviceAttributes.
var chips = topology.Family{Driver: "chip.example.com", Prefix: "chip"}

// attributes shows a driver that publishes no topology, and a table that adds it.
func (d *demo) attributes(ctx context.Context) error {
	torus, err := topology.NewTorus(chips, 4, 4)
	if err != nil {
		return err
	}
	at := site{Story: &story.Story{Topology: torus}, node: "chips-0"}
	if _, err := controlplane.CreateNodes(ctx, d.kube, 1, controlplane.NodeOptions{Prefix: "chips"}); err != nil {
		return err
	}
	if err := d.publishPlain(ctx, at); err != nil {
		return err
	}
	d.sites = append(d.sites, at)
	d.say("9. chips-0 has 16 chips in a 4x4 torus, but their driver publishes no coordinates. A pod wants a 2x2 block of")
	d.say("   chips. All chips are free, but no chip has the coordinates that the constraint reads, so the pod waits:\n")
	if err := d.applyOwn(ctx, "claim.yaml"); err != nil {
		return err
	}
	if err := d.showWaiting(ctx, "chips", "block2x2"); err != nil {
		return err
	}
	d.say("   An administrator applies a table with the coordinates, the DeviceAttributes object \"chips\". The driver does")
	d.say("   not change, and the pod is not created again:\n")
	start := time.Now()
	if err := d.applyOwn(ctx, "table.yaml"); err != nil {
		return err
	}
	return d.showRunning(ctx, "chips", start)
}

// publishPlain publishes the devices of a site without the attributes of their topology.
func (d *demo) publishPlain(ctx context.Context, at site) error {
	slices, err := at.Topology.ResourceSlices(at.node)
	if err != nil {
		return err
	}
	for _, slice := range slices {
		for i := range slice.Spec.Devices {
			slice.Spec.Devices[i].Attributes = nil
		}
		if err := d.create(ctx, slice); err != nil {
			return err
		}
	}
	return nil
}

// applyOwn applies a manifest of the act.
func (d *demo) applyOwn(ctx context.Context, name string) error {
	manifest, err := fs.ReadFile(manifests, path.Join("attributes", name))
	if err != nil {
		return err
	}
	return d.applyText(ctx, string(manifest))
}
