// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/celset/celset/test/internal/render"
)

// isAboutRights reports whether an object defines rights.
func isAboutRights(object *unstructured.Unstructured) bool {
	return object.GetKind() == "ServiceAccount" || object.GroupVersionKind().Group == "rbac.authorization.k8s.io"
}

// rights returns the objects that define rights, by kind, namespace and name.
func rights(objects []*unstructured.Unstructured) map[string]any {
	return byName(slices.DeleteFunc(withoutLabels(objects, recommendedLabels...), func(o *unstructured.Unstructured) bool { return !isAboutRights(o) }))
}

// byName maps objects by name for comparisons, because their order has no meaning.
func byName(objects []*unstructured.Unstructured) map[string]any {
	result := map[string]any{}
	for _, o := range objects {
		result[byNameKey(o)] = o.Object
	}
	return result
}

// byNameKey returns the key of an object in the result of byName.
func byNameKey(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// file reads the objects in a file in manifests.
func file(t *testing.T, elements ...string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{root}, elements...)...))
	require.NoError(t, err)
	objects, err := render.Decode(content)
	require.NoError(t, err)
	return objects
}

// TestRenderedRightsAreTheProvedOnes compares the rendered rights with the rights in other tests that run the programs.
// test/integration runs celset-scheduler. test/cmd/celset-placement and the demo of Placements run celset-placement's controller.
func TestRenderedRightsAreTheProvedOnes(t *testing.T) {
	for overlay, proved := range map[string]string{
		"default-scheduler": "scheduler", "second-scheduler": "scheduler", "placement-standalone": "placement",
	} {
		t.Run(overlay, func(t *testing.T) {
			want := rights(file(t, proved, "rbac.yaml"))
			require.NotEmpty(t, want)
			require.Empty(t, cmp.Diff(want, rights(rendered(t, "overlays/"+overlay))))
		})
	}
}

// TestPodsRunAsTheAccounts checks that each pod's account is among the rights.
func TestPodsRunAsTheAccounts(t *testing.T) {
	for _, folder := range kustomizations(t) {
		if filepath.Dir(folder) != "overlays" {
			continue
		}
		objects := rendered(t, folder)
		pods := 0
		for _, object := range objects {
			account, found, err := unstructured.NestedString(object.Object, "spec", "template", "spec", "serviceAccountName")
			require.NoError(t, err)
			if found {
				pods++
				require.Equal(t, object.GetNamespace(), find(t, objects, "ServiceAccount", account).GetNamespace(), folder)
			}
		}
		require.Positive(t, pods, folder)
	}
}
