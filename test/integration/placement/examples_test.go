// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/env"
)

// placementExamples are the tests of files in manifests/examples/placement; those of the others are
// scripts in testdata/examples.
var placementExamples = map[string]func(t *testing.T, file string){
	"cel-clusterprofile.yaml": exampleClusterProfile,
	"placementdecision.yaml":  examplePlacementDecision,
	"serviceaccount.yaml":     exampleServiceAccount,
}

// federationExamples has those in manifests/examples/federation.
var federationExamples = map[string]func(t *testing.T, file string){
	"configmap.yaml":   exampleConfigMap,
	"europe.yaml":      exampleEurope,
	"one-cluster.yaml": exampleOneCluster,
	"production.yaml":  exampleProduction,
}

func TestPlacementExamples(t *testing.T)  { runExamples(t, "placement", placementExamples) }
func TestFederationExamples(t *testing.T) { runExamples(t, "federation", federationExamples) }

// runExamples tests every file of a folder; one without a test fails.
func runExamples(t *testing.T, folder string, tests map[string]func(t *testing.T, file string)) {
	files, err := filepath.Glob(env.Manifest(t, "examples", folder, "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			if test := tests[name]; test != nil {
				test(t, filepath.Join("examples", folder, name))
				return
			}
			runScript(t, filepath.Join("testdata", "examples", strings.TrimSuffix(name, ".yaml")+".txt"))
		})
	}
}

// documents decodes a manifest.
func (s scene) documents(t testing.TB, file string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(env.Manifest(t, file))
	require.NoError(t, err)
	var result []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return result
		} else {
			require.NoError(t, err)
		}
		if len(object.Object) > 0 {
			result = append(result, object)
		}
	}
}

// apply does what "kubectl apply --server-side" does with a manifest, and for the
// objects with a status once more with "--subresource=status". Everything but
// namespaces is deleted after the test.
func (s scene) apply(t testing.TB, file string) []*unstructured.Unstructured {
	t.Helper()
	for _, object := range s.documents(t, file) {
		if object.GetNamespace() != "" {
			s.open(t, object.GetNamespace())
		}
	}
	content, err := os.ReadFile(env.Manifest(t, file))
	require.NoError(t, err)
	applied, err := controlplane.Apply(t.Context(), s.RESTConfig(), content, controlplane.ApplyOptions{Namespace: s.namespace})
	require.NoError(t, err)
	for i, object := range s.documents(t, file) {
		if applied[i].GetKind() != "Namespace" {
			s.cleanUp(t, applied[i])
		}
		if status, ok := object.Object["status"]; ok {
			applied[i].Object["status"] = status
			require.NoError(t, s.Status().Update(t.Context(), applied[i]))
		}
	}
	return applied
}

// read gets an object of an example as it is now, typed.
func read[T client.Object](t testing.TB, s scene, namespace, name string, into T) T {
	t.Helper()
	require.NoError(t, s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, into))
	return into
}
