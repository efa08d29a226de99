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

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/realnode"
	"github.com/celset/celset/test/story"
)

// realStory is a user story whose pod runs on the real node.
type realStory struct{ *story.Story }

var (
	ring = &realStory{story.Ring()}
	grid = &realStory{story.Grid()}
)

// create creates the story's pod under another name, changed for the real node and by each of changes. It creates the pod's
// claim template if it is missing.
func (s *realStory) create(ctx context.Context, name string, changes ...func(*corev1.PodSpec)) error {
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
func (s *realStory) read() (*resourceapi.ResourceClaimTemplate, *corev1.Pod, error) {
	content, err := os.ReadFile(filepath.Join("..", "..", "manifests", "examples", s.Manifest))
	if err != nil {
		return nil, nil, err
	}
	documents := bytes.Split(content, []byte("\n---\n"))
	if len(documents) != 2 {
		return nil, nil, fmt.Errorf("%s has %d documents, but should have a template and a pod", s.Manifest, len(documents))
	}
	var template resourceapi.ResourceClaimTemplate
	if err := yaml.UnmarshalStrict(documents[0], &template); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.Manifest, err)
	}
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(documents[1], &pod); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.Manifest, err)
	}
	return &template, &pod, nil
}

// ends makes the pod's container end by itself after the duration. The restart policy must not be "Never". With "Never", if a
// kubelet is killed between creating and starting a container, the next kubelet never starts it.
func ends(after string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.RestartPolicy = corev1.RestartPolicyOnFailure
		spec.Containers[0].Args = []string{"-for", after}
	}
}

// addKwokNodes creates a simulated node for each story. Other pods use some of the node's devices.
func addKwokNodes(ctx context.Context) error {
	for _, s := range []*realStory{ring, grid} {
		nodes, err := controlplane.CreateNodes(ctx, client(), 1, controlplane.NodeOptions{Prefix: "kwok-" + s.Pod})
		if err != nil {
			return err
		}
		published, err := s.Topology.ResourceSlices(nodes[0])
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

// occupy creates a pod on a simulated node that uses some of the node's devices.
func (s *realStory) occupy(ctx context.Context, node string) error {
	claim, pod, err := s.Occupant("other-"+s.Pod, node, s.Fragmented...)
	if err != nil {
		return err
	}
	if _, err := client().ResourceV1().ResourceClaims(namespace).Create(ctx, claim, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := client().CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err = waitRunning(ctx, pod.Name)
	return err
}
