// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Command schemas writes the JSON schemas of celset's kinds. It reads the Go types with the parser of controller-gen, so that
// markers have the same meaning as in a CRD:
//
//	schemas DIRECTORY CRD...
//
// It writes a file for each kind, and celset.schema.json for whole manifests, which also contains the kinds of the CRDs. See
// schemas/README.md.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/controller-tools/pkg/crd"
	crdmarkers "sigs.k8s.io/controller-tools/pkg/crd/markers"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

// kinds are the kinds with a schema.
var kinds = []struct {
	name, apiVersion, path string
	// anonymous is set if apiVersion and kind are optional.
	anonymous bool
	// isObject is set if the kind is a kind of objects, and not of parameters.
	isObject bool
}{
	{name: "CELDeviceConstraint", apiVersion: "celset.dev/v1alpha1", path: "./apis/celset/v1alpha1"},
	{name: "CELDevicePreference", apiVersion: "celset.dev/v1alpha1", path: "./apis/celset/v1alpha1"},
	{name: "CELNodeSetConstraint", apiVersion: "celset.dev/v1alpha1", path: "./apis/celset/v1alpha1"},
	{name: "DeviceAttributes", apiVersion: "celset.dev/v1alpha1", path: "./apis/celset/v1alpha1", isObject: true},
	{name: "ExpressionTest", apiVersion: "kubectl.celset.dev/v1alpha1", path: "./cmd/kubectl-celset/suite", isObject: true},
	{name: "DynamicResourcesCELArgs", apiVersion: "config.celset.dev/v1alpha1", path: "./apis/config/v1alpha1", anonymous: true},
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: schemas DIRECTORY CRD...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "schemas:", err)
		os.Exit(1)
	}
}

func run(directory string, crds []string) error {
	reader, err := newReader()
	if err != nil {
		return err
	}
	all := map[string]schema{}
	for _, kind := range kinds {
		one, err := reader.read(kind.path, kind.name)
		if err != nil {
			return fmt.Errorf("kind %s: %w", kind.name, err)
		}
		one.identify(kind.apiVersion, kind.name, kind.anonymous)
		if kind.isObject {
			one.properties()["kind"].(schema)["description"] = "The kind of the object."
		}
		all[kind.name] = one
		if err := write(filepath.Join(directory, kind.name+".schema.json"), document(kind.name, one)); err != nil {
			return err
		}
	}
	objects, err := readCRDs(crds)
	if err != nil {
		return err
	}
	return write(filepath.Join(directory, "celset.schema.json"), manifests(all, objects))
}

func write(path string, content schema) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(content); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

// A reader reads schemas from Go types.
type reader struct {
	parser    *crd.Parser
	collector *markers.Collector
}

// newReader adds Kubernetes' markers that controller-gen lacks: +enum, which it calls +k8s:enum, and the markers of unions.
func newReader() (*reader, error) {
	registry := &markers.Registry{}
	if err := crdmarkers.Register(registry); err != nil {
		return nil, err
	}
	for name, of := range map[string]struct {
		target markers.TargetType
		value  any
	}{
		"enum":               {markers.DescribesType, crdmarkers.K8sEnum{}},
		"unionDiscriminator": {markers.DescribesField, struct{}{}},
		"unionMember":        {markers.DescribesField, struct{}{}},
	} {
		if err := registry.Define(name, of.target, of.value); err != nil {
			return nil, err
		}
	}
	collector := &markers.Collector{Registry: registry}
	parser := &crd.Parser{Collector: collector, Checker: &loader.TypeChecker{}}
	crd.AddKnownTypes(parser)
	return &reader{parser: parser, collector: collector}, nil
}

func (r *reader) read(path, name string) (schema, error) {
	roots, err := loader.LoadRoots(path)
	if err != nil {
		return nil, err
	}
	id := crd.TypeIdent{Package: roots[0], Name: name}
	r.parser.NeedFlattenedSchemaFor(id)
	// Ignore type errors: they come from imported packages that are not type-checked.
	if loader.PrintErrors(roots, packages.TypeError) {
		return nil, fmt.Errorf("package %s has errors", path)
	}
	text, err := json.Marshal(r.parser.FlattenedSchemata[id])
	if err != nil {
		return nil, err
	}
	var result schema
	if err := json.Unmarshal(text, &result); err != nil {
		return nil, err
	}
	result.close()
	if info := r.parser.LookupType(roots[0], name); info != nil {
		result.unite(info)
	}
	return result, nil
}
