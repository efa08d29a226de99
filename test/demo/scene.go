// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/machine"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/story"
)

// site is a node with devices.
type site struct {
	*story.Story
	node string
	// taken are the devices that another pod uses from the start.
	taken []string
}

// sites returns two Trainium nodes, two nodes with rings and two nodes with meshes. Of each pair, the first node has enough
// free devices, but no free set that fits.
func sites() ([]site, error) {
	trn1, err := machine.ByName("aws-trn1")
	if err != nil {
		return nil, err
	}
	neurons, ring, grid := &story.Story{Topology: trn1.Topology("trn1")}, story.Ring(), story.Grid()
	return []site{
		{neurons, "trn1-0", []string{"neuron-device-4", "neuron-device-6", "neuron-device-12", "neuron-device-14"}},
		{neurons, "trn1-1", []string{"neuron-device-0", "neuron-device-7"}},
		{ring, "ring-0", ring.Fragmented},
		{ring, "ring-1", []string{"mla-1"}},
		{grid, "mesh-0", grid.Fragmented},
		{grid, "mesh-1", []string{"mla-1", "mla-4", "mla-11"}},
	}, nil
}

// setUp creates nodes, devices and device classes, and pods that use some devices.
func (d *demo) setUp(ctx context.Context) (err error) {
	// The priority class comes first, because the API server rejects pods of a class for a moment after the class was created.
	if err := d.create(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 1000}); err != nil {
		return err
	}
	if d.sites, err = sites(); err != nil {
		return err
	}
	for _, prefix := range []string{"trn1", "ring", "mesh"} {
		if _, err := controlplane.CreateNodes(ctx, d.kube, 2, controlplane.NodeOptions{Prefix: prefix}); err != nil {
			return err
		}
	}
	if err := d.apply(ctx, "deviceclasses.yaml"); err != nil {
		return err
	}
	if err := d.furnish(ctx); err != nil {
		return err
	}
	d.say("Six nodes: two trn1.32xlarge with 16 Trainium accelerators in a torus and eight EFAs, two with a ring of")
	d.say("eight accelerators, two with a 4x4 mesh. Lines are links between devices. Some devices have a letter: pods of")
	d.say("other users have them.\n")
	return d.draw(ctx, "", d.sites...)
}

// furnish publishes the devices of all sites. Then it waits until other pods have the devices in taken.
func (d *demo) furnish(ctx context.Context) error {
	for _, s := range d.sites {
		slices, err := s.Topology.ResourceSlices(s.node)
		if err != nil {
			return err
		}
		for _, slice := range slices {
			if err := d.create(ctx, slice); err != nil {
				return err
			}
		}
		if err := d.occupy(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// occupy creates a pod that uses the site's taken devices, and waits until it runs. Each of changes is applied to the pod's
// spec before.
func (d *demo) occupy(ctx context.Context, s site, changes ...func(*corev1.PodSpec)) error {
	name := "other-" + s.node
	claim, pod, err := s.Occupant(name, s.node, s.taken...)
	if err != nil {
		return err
	}
	for _, change := range changes {
		change(&pod.Spec)
	}
	claim.Namespace, pod.Namespace = namespace, namespace
	if err := d.create(ctx, claim, pod); err != nil {
		return err
	}
	_, err = d.running(ctx, 1, named(name))
	return err
}
