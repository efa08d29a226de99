// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render renders the folders of manifests/ and returns the objects, for tests that validate them or run programs with
// their rights and configuration.
//
//	objects, err := render.Kustomization("../../manifests/overlays/second-scheduler")
//	deployment, err := render.Find(objects, "Deployment", "celset-scheduler")
package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// decoderBuffer is the number of bytes that the decoder inspects to distinguish YAML from JSON.
const decoderBuffer = 4096

// Kustomization does the same as "kustomize build" with the folder.
func Kustomization(folder string) ([]*unstructured.Unstructured, error) {
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", folder, err)
	}
	content, err := rendered.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", folder, err)
	}
	return Decode(content)
}

// Decode reads the documents of a YAML stream. It skips empty documents.
func Decode(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), decoderBuffer)
	for document := 1; ; document++ {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("document %d: %w", document, err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

// Find returns the first object of the kind whose name begins with name. It compares only the beginning, because kustomize
// appends a hash to names of ConfigMaps.
func Find(objects []*unstructured.Unstructured, kind, name string) (*unstructured.Unstructured, error) {
	for _, object := range objects {
		if object.GetKind() == kind && strings.HasPrefix(object.GetName(), name) {
			return object, nil
		}
	}
	return nil, fmt.Errorf("no %s %s among %d objects", kind, name, len(objects))
}

// Args returns the arguments of a Deployment's first container.
func Args(deployment *unstructured.Unstructured) ([]string, error) {
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if err != nil {
		return nil, err
	}
	if len(containers) == 0 {
		return nil, fmt.Errorf("%s %s has no containers", deployment.GetKind(), deployment.GetName())
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s %s: a container is %T", deployment.GetKind(), deployment.GetName(), containers[0])
	}
	args, _, err := unstructured.NestedStringSlice(container, "args")
	return args, err
}
