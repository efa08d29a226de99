// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/story"
)

// site is a node with its devices.
type site struct {
	*story.Story
	node string
	// taken are devices that other pods have from the start.
	taken []string
}

// sites are two Trainium nodes, two nodes with rings, two with meshes. On the first of each no
// set of devices fits, though enough are free.
func sites() []site {
	neurons, ring, grid := story.Neurons(), story.Ring(), story.Grid()
	return []site{
		{neurons, "trn1-0", neurons.Fragmented},
		{neurons, "trn1-1", []string{"neuron-device-0", "neuron-device-7"}},
		{ring, "ring-0", ring.Fragmented},
		{ring, "ring-1", []string{"mla-1"}},
		{grid, "mesh-0", grid.Fragmented},
		{grid, "mesh-1", []string{"mla-1", "mla-4", "mla-11"}},
	}
}

// setUp creates nodes, devices and classes, and pods that take some devices.
func (d *demo) setUp(ctx context.Context) error {
	for _, prefix := range []string{"trn1", "ring", "mesh"} {
		if _, err := controlplane.CreateNodes(ctx, d.client, 2, controlplane.NodeOptions{Prefix: prefix}); err != nil {
			return err
		}
	}
	if err := d.apply(ctx, "deviceclasses.yaml", nil); err != nil {
		return err
	}
	// Early: pods of a class that the API server has only just got to know are refused.
	urgent := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 1000}
	if _, err := d.client.SchedulingV1().PriorityClasses().Create(ctx, urgent, metav1.CreateOptions{}); err != nil {
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

// furnish publishes the devices of all sites, and waits until those that are taken are.
func (d *demo) furnish(ctx context.Context) error {
	for _, s := range d.sites {
		if err := d.publish(ctx, s); err != nil {
			return err
		}
		if err := d.occupy(ctx, s); err != nil {
			return err
		}
	}
	for _, s := range d.sites {
		if _, err := d.waitRunning(ctx, occupant(s)); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) publish(ctx context.Context, s site) error {
	slices, err := s.Topology.ResourceSlices(s.node)
	if err != nil {
		return err
	}
	for _, slice := range slices {
		if _, err := d.client.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// occupant is the name of the pod, and of the claim, that takes devices of a site
// from the start.
func occupant(s site) string { return "other-" + s.node }

// occupy has a pod, changed as told, take devices.
func (d *demo) occupy(ctx context.Context, s site, changes ...func(*corev1.PodSpec)) error {
	claim, pod, err := s.Occupant(occupant(s), s.node, s.taken...)
	if err != nil {
		return err
	}
	for _, change := range changes {
		change(&pod.Spec)
	}
	if _, err := d.client.ResourceV1().ResourceClaims(namespace).Create(ctx, claim, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err = d.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}
