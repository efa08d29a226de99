// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/topology"
)

const (
	ringDriver = "mla.example.com"
	meshDriver = "mesh.example.com"

	pauseImage = "registry.k8s.io/pause:3.10"
)

// site is a node with its devices.
type site struct {
	node     string
	topology topology.Topology
	// taken are the numbers of the devices that other pods have from the start.
	taken []int
}

// sites are two nodes with rings, two with meshes. On the first of each no set
// of devices fits, though enough are free.
func sites() ([]site, error) {
	ring, err := topology.NewRing(topology.Family{Driver: ringDriver, Prefix: "mla"}, 8)
	if err != nil {
		return nil, err
	}
	mesh, err := topology.NewMesh(topology.Family{Driver: meshDriver, Prefix: "mla"}, 4, 4)
	if err != nil {
		return nil, err
	}
	return []site{
		{"ring-0", ring, []int{1, 5}},
		{"ring-1", ring, []int{1}},
		{"mesh-0", mesh, []int{1, 3, 4, 6, 9, 11, 12, 14}},
		{"mesh-1", mesh, []int{1, 4, 11}},
	}, nil
}

// setUp creates nodes, devices and classes, and pods that take some devices.
func (d *demo) setUp(ctx context.Context) error {
	all, err := sites()
	if err != nil {
		return err
	}
	for _, prefix := range []string{"ring", "mesh"} {
		if _, err := controlplane.CreateNodes(ctx, d.client, 2, controlplane.NodeOptions{Prefix: prefix}); err != nil {
			return err
		}
	}
	if err := d.apply(ctx, "deviceclasses.yaml", nil); err != nil {
		return err
	}
	for _, s := range all {
		if err := d.publish(ctx, s); err != nil {
			return err
		}
		if err := d.occupy(ctx, s); err != nil {
			return err
		}
	}
	for _, s := range all {
		if _, err := d.waitRunning(ctx, occupant(s)); err != nil {
			return err
		}
	}
	d.say("Two nodes with rings of eight accelerators, two with 4x4 meshes. Some are taken by")
	d.say("pods of the default scheduler profile.\n")
	return d.draw(ctx, "", all...)
}

func (d *demo) publish(ctx context.Context, s site) error {
	slices, err := s.topology.ResourceSlices(s.node)
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
	claim := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: occupant(s)},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{
				Name: "mla",
				Exactly: &resourceapi.ExactDeviceRequest{
					DeviceClassName: s.topology.Devices[0].Driver,
					AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
					Count:           int64(len(s.taken)),
					Selectors: []resourceapi.DeviceSelector{{
						CEL: &resourceapi.CELDeviceSelector{Expression: s.takenExpression()},
					}},
				},
			}},
		}},
	}
	if _, err := d.client.ResourceV1().ResourceClaims(namespace).Create(ctx, claim, metav1.CreateOptions{}); err != nil {
		return err
	}
	pod := newPod(occupant(s), corev1.DefaultSchedulerName)
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: s.node}
	pod.Spec.ResourceClaims[0].ResourceClaimName = &claim.Name
	for _, change := range changes {
		change(&pod.Spec)
	}
	_, err := d.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// takenExpression selects the taken devices by their number.
func (s site) takenExpression() string {
	numbers := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(s.taken)), ", "), "[]")
	if s.topology.Kind == topology.Ring {
		return fmt.Sprintf("device.attributes['%s'].index in [%s]", ringDriver, numbers)
	}
	return fmt.Sprintf("cel.bind(a, device.attributes['%s'], a.row * %d + a.col in [%s])", meshDriver, s.topology.Cols, numbers)
}

// newPod has one claim, "mla", which the caller fills in.
func newPod(name, scheduler string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			SchedulerName:  scheduler,
			ResourceClaims: []corev1.PodResourceClaim{{Name: "mla"}},
			Containers: []corev1.Container{{
				Name:      "main",
				Image:     pauseImage,
				Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "mla"}}},
			}},
		},
	}
}
