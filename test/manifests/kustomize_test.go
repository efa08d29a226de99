// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/celset/celset/internal/render"
)

const root = "../../manifests"

// kustomizations are the folders with a kustomization, relative to manifests.
func kustomizations(t *testing.T) []string {
	t.Helper()
	var result []string
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Base(path) == "kustomization.yaml" {
			folder, err := filepath.Rel(root, filepath.Dir(path))
			result = append(result, filepath.ToSlash(folder))
			return err
		}
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, result)
	return result
}

// rendered does what "kustomize build" does with a folder in manifests.
func rendered(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := render.Kustomization(filepath.Join(root, folder))
	require.NoError(t, err)
	return objects
}

func TestAPIServerTakesKustomizations(t *testing.T) {
	for _, folder := range kustomizations(t) {
		t.Run(folder, func(t *testing.T) {
			if folder == "placement/without-bindings" {
				t.Skip("has no objects, only patches: overlays/placement uses it")
			}
			server(t).dryRun(t, rendered(t, folder))
		})
	}
}
