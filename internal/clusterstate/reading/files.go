// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"fmt"
	"io"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/celset/celset/internal/clusterstate"
)

// Documents reads objects of any kind as YAML or JSON. As in kubectl, a name is a file, a directory, a URL, or "-" for
// stdin. The items of a list become separate documents.
func Documents(filenames resource.FilenameOptions, stdin io.Reader) ([]clusterstate.Document, error) {
	builder := resource.NewLocalBuilder().Unstructured().ContinueOnError().Flatten()
	var files resource.FilenameOptions
	files.Kustomize, files.Recursive = filenames.Kustomize, filenames.Recursive
	names := slices.Clone(filenames.Filenames)
	if slices.Contains(names, "-") {
		builder = builder.Stream(newBounded(stdin, "stdin"), "stdin")
		names = slices.DeleteFunc(names, func(name string) bool { return name == "-" })
	}
	regular, streams, err := checkSizes(names, filenames.Recursive)
	if err != nil {
		return nil, err
	}
	files.Filenames = regular
	for _, name := range streams {
		stream, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = stream.Close() }()
		builder = builder.Stream(newBounded(stream, name), name)
	}
	if len(files.Filenames) > 0 || files.Kustomize != "" {
		builder = builder.FilenameParam(false, &files)
	}
	infos, err := builder.Do().Infos()
	if err != nil {
		return nil, err
	}
	documents := make([]clusterstate.Document, 0, len(infos))
	for _, info := range infos {
		if object, ok := info.Object.(*unstructured.Unstructured); ok {
			documents = append(documents, clusterstate.Document{Source: info.Source, Object: object})
		}
	}
	return documents, nil
}

// Files reads the objects of supported kinds, with the pods of Jobs, and records the names of all others. An unknown field is an error in claims,
// templates, classes, groups and DeviceAttributes, as in kubectl apply.
func Files(filenames resource.FilenameOptions, stdin io.Reader, namespace string) (*clusterstate.Objects, error) {
	documents, err := Documents(filenames, stdin)
	if err != nil {
		return nil, err
	}
	// A Job with mistakes must not prevent answers about the other objects.
	documents, ofJobs := clusterstate.WithPods(documents)
	objects := &clusterstate.Objects{}
	if ofJobs != nil {
		objects.Warnings = append(objects.Warnings, fmt.Sprintf("the pods of Jobs are left out: %v", ofJobs))
	}
	for _, document := range documents {
		if err := objects.Add(document, namespace); err != nil {
			return nil, err
		}
	}
	return objects, nil
}
