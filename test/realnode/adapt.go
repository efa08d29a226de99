// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"bytes"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Adapt changes a pod so that it can run on a [Node]: it sets the image to the node's image, and removes features that the node
// lacks.
func Adapt(spec *corev1.PodSpec) {
	no := false
	spec.HostNetwork = true
	spec.AutomountServiceAccountToken = &no
	spec.EnableServiceLinks = &no
	for i := range spec.Containers {
		spec.Containers[i].Image = Image
		spec.Containers[i].ImagePullPolicy = corev1.PullNever
	}
}

// separator separates the documents of a manifest.
var separator = []byte("\n---\n")

// AdaptManifest applies Adapt to the pods in a manifest of YAML documents. It doesn't change other objects.
func AdaptManifest(manifest []byte) ([]byte, error) {
	documents := bytes.Split(manifest, separator)
	for i, document := range documents {
		var err error
		if documents[i], err = adaptDocument(document); err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
	}
	return bytes.Join(documents, separator), nil
}

func adaptDocument(document []byte) ([]byte, error) {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return nil, err
	}
	if kind.Kind != "Pod" {
		return document, nil
	}
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(document, &pod); err != nil {
		return nil, err
	}
	Adapt(&pod.Spec)
	return yaml.Marshal(pod)
}
