// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/realnode"
	"github.com/celset/celset/internal/topology"
)

// story is one of the two user stories of the KEP: an example manifest and the devices
// that it is about.
type story struct {
	name        string // of the pod in the manifest
	manifest    string
	topology    topology.Topology
	driverFlags []string
	// holds judges devices by the connections between them.
	holds func(t topology.Topology, devices []string) bool
	// taken are, by number, the devices that others have on the nodes of kwok: enough
	// are free, but no set satisfies the constraint.
	taken string
}

var (
	ring = &story{
		name: "ring", manifest: "ring-4-connected.yaml",
		topology:    must(topology.NewRing(topology.Family{Driver: "mla.example.com", Prefix: "mla"}, 8)),
		driverFlags: []string{"--topology=ring", "--devices=8"},
		holds: func(t topology.Topology, devices []string) bool {
			return len(devices) == 4 && t.Contiguous(devices)
		},
		taken: "device.attributes['mla.example.com'].index in [1, 5]",
	}
	grid = &story{
		name: "grid", manifest: "grid-2x2.yaml",
		topology:    must(topology.NewMesh(topology.Family{Driver: "mesh.example.com", Prefix: "mla"}, 4, 4)),
		driverFlags: []string{"--topology=mesh", "--rows=4", "--columns=4", "--device-prefix=mla"},
		holds: func(t topology.Topology, devices []string) bool {
			return t.IsBlock(devices, 2, 2)
		},
		taken: "(device.attributes['mesh.example.com'].row + device.attributes['mesh.example.com'].col) % 2 == 1",
	}
)

func must(t topology.Topology, err error) topology.Topology {
	if err != nil {
		panic(err)
	}
	return t
}

// driver is the name of the driver of all devices of the story.
func (s *story) driver() string { return s.topology.Devices[0].Driver }

// create creates the pod of the manifest with another name, adapted to the node and
// changed as told, and the template of its claim if there is none.
func (s *story) create(ctx context.Context, name string, changes ...func(*corev1.PodSpec)) error {
	template, pod, err := s.read()
	if err != nil {
		return err
	}
	_, err = client().ResourceV1().ResourceClaimTemplates(namespace).Create(ctx, template, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	pod.Name = name
	realnode.Adapt(&pod.Spec)
	for _, change := range changes {
		change(&pod.Spec)
	}
	_, err = client().CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// read reads the two documents of the manifest.
func (s *story) read() (*resourceapi.ResourceClaimTemplate, *corev1.Pod, error) {
	content, err := os.ReadFile(filepath.Join(cluster.manifests, "examples", s.manifest))
	if err != nil {
		return nil, nil, err
	}
	documents := bytes.Split(content, []byte("\n---\n"))
	if len(documents) != 2 {
		return nil, nil, fmt.Errorf("%s has %d documents, but should have a template and a pod", s.manifest, len(documents))
	}
	var template resourceapi.ResourceClaimTemplate
	if err := yaml.UnmarshalStrict(documents[0], &template); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.manifest, err)
	}
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(documents[1], &pod); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.manifest, err)
	}
	return &template, &pod, nil
}

// ends has a pod end by itself.
func ends(after string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.RestartPolicy = corev1.RestartPolicyNever
		spec.Containers[0].Args = []string{"-for", after}
	}
}

// addKwokNodes creates a node for each story on which other pods have devices.
func addKwokNodes(ctx context.Context) error {
	for _, s := range []*story{ring, grid} {
		nodes, err := controlplane.CreateNodes(ctx, client(), 1, controlplane.NodeOptions{Prefix: "kwok-" + s.name})
		if err != nil {
			return err
		}
		published, err := s.topology.ResourceSlices(nodes[0])
		if err != nil {
			return err
		}
		for _, slice := range published {
			if _, err := client().ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		if err := s.occupy(ctx, nodes[0]); err != nil {
			return err
		}
	}
	return nil
}

// occupy has a pod of a kwok node take devices.
func (s *story) occupy(ctx context.Context, node string) error {
	claim := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "other-" + s.name},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: "mla",
			Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: s.driver(),
				AllocationMode:  resourceapi.DeviceAllocationModeAll,
				Selectors:       []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: s.taken}}},
			},
		}}}},
	}
	if _, err := client().ResourceV1().ResourceClaims(namespace).Create(ctx, claim, metav1.CreateOptions{}); err != nil {
		return err
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Name},
		Spec: corev1.PodSpec{
			NodeSelector:   map[string]string{corev1.LabelHostname: node},
			ResourceClaims: []corev1.PodResourceClaim{{Name: "mla", ResourceClaimName: &claim.Name}},
			Containers: []corev1.Container{{
				Name: "main", Image: "none",
				Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "mla"}}},
			}},
		},
	}
	if _, err := client().CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := waitRunning(ctx, pod.Name)
	return err
}
