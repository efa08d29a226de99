// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/celset/celset/test/internal/render"
)

const root = "../../manifests"

// components are kustomize components. They are rendered only as parts of kustomizations.
var components = []string{"placement/without-bindings", "placement/multikueue", "webhook/placements", "webhook/guard", "webhook/files"}

// kustomizations returns the folders with a kustomization, relative to manifests.
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

// completed is a copy of the folder manifests, with the files that an installation must add. It is deleted at the end of the
// run.
var completed string

// complete copies manifests into a folder. It adds the certificates and keys that kustomizations need to generate Secrets.
func complete(folder string) error {
	if err := os.CopyFS(folder, os.DirFS(root)); err != nil {
		return err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("celset.example.com", nil, nil)
	if err != nil {
		return err
	}
	return filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "kustomization.yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var kustomization types.Kustomization
		if err := kustomization.Unmarshal(content); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, generator := range kustomization.SecretGenerator {
			for _, file := range generator.FileSources {
				content := certificate
				if filepath.Ext(file) == ".key" {
					content = key
				}
				if err := os.WriteFile(filepath.Join(filepath.Dir(path), file), content, 0o600); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// rendered does the same as "kustomize build" with a folder of manifests.
func rendered(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := render.Kustomization(filepath.Join(completed, folder))
	require.NoError(t, err)
	return objects
}

func TestAPIServerTakesKustomizations(t *testing.T) {
	for _, folder := range kustomizations(t) {
		t.Run(folder, func(t *testing.T) {
			if slices.Contains(components, folder) || strings.HasPrefix(folder, "labels/") {
				t.Skip("has no objects, only changes of objects: a kustomization uses it")
			}
			server(t).dryRun(t, rendered(t, folder))
		})
	}
}
