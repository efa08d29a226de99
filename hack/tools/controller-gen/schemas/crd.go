// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// A resource is a version of a kind in a CRD.
type resource struct {
	apiVersion, kind string
	schema           schema
}

func (r resource) name() string {
	return r.kind + "." + strings.ReplaceAll(r.apiVersion, "/", ".")
}

// readCRDs reads the served versions from the files, in a fixed order.
func readCRDs(paths []string) ([]resource, error) {
	var result []resource
	for _, path := range slices.Sorted(slices.Values(paths)) {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, version := range crd.Spec.Versions {
			if !version.Served {
				continue
			}
			one := resource{apiVersion: crd.Spec.Group + "/" + version.Name, kind: crd.Spec.Names.Kind}
			text, err := json.Marshal(version.Schema.OpenAPIV3Schema)
			if err != nil {
				return nil, err
			}
			if err := json.Unmarshal(text, &one.schema); err != nil {
				return nil, err
			}
			one.schema.close()
			result = append(result, one)
		}
	}
	return result, nil
}
