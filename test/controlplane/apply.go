// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// yamlBuffer is the number of bytes that the decoder inspects to distinguish YAML from JSON.
const yamlBuffer = 4096

// ApplyOptions are options of Apply.
type ApplyOptions struct {
	// Namespace is the default for namespaced objects that don't set one. Empty means "default".
	Namespace string
	// DryRun makes the API server validate the objects without storing them.
	DryRun bool
}

// Apply does the same as "kubectl apply --server-side" with a manifest of YAML or JSON documents. It returns the objects as
// stored by the API server. Unknown fields are errors.
func Apply(ctx context.Context, config *rest.Config, manifest []byte, options ApplyOptions) ([]*unstructured.Unstructured, error) {
	objects, err := decodeManifest(manifest)
	if err != nil {
		return nil, err
	}
	a, err := newApplier(config, options)
	if err != nil {
		return nil, err
	}
	applied := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		result, err := a.apply(ctx, object)
		if err != nil {
			return applied, fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		applied = append(applied, result)
	}
	return applied, nil
}

func decodeManifest(manifest []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), yamlBuffer)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("document %d of the manifest: %w", len(objects)+1, err)
		case len(object.Object) > 0: // not just a comment
			objects = append(objects, object)
		}
	}
}

// An applier applies objects, and maps their kinds to API resources.
type applier struct {
	client  dynamic.Interface
	mapper  meta.RESTMapper
	options ApplyOptions
}

func newApplier(config *rest.Config, options ApplyOptions) (*applier, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	groups, err := restmapper.GetAPIGroupResources(clients.Discovery())
	if err != nil {
		return nil, fmt.Errorf("discover API resources: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &applier{client: client, mapper: restmapper.NewDiscoveryRESTMapper(groups), options: options}, nil
}

func (a *applier) apply(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	kind := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	var resource dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		resource = a.client.Resource(mapping.Resource).Namespace(a.namespace(object))
	}
	options := metav1.PatchOptions{FieldManager: "devcluster", FieldValidation: metav1.FieldValidationStrict}
	if a.options.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	data, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return resource.Patch(ctx, object.GetName(), types.ApplyPatchType, data, options)
}

func (a *applier) namespace(object *unstructured.Unstructured) string {
	for _, name := range []string{object.GetNamespace(), a.options.Namespace} {
		if name != "" {
			return name
		}
	}
	return metav1.NamespaceDefault
}
