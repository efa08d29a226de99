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

// isAboutRights reports whether an object is a Role, a role binding, their cluster-scoped kinds, or a ServiceAccount.
func isAboutRights(object *unstructured.Unstructured) bool {
	return object.GetKind() == "ServiceAccount" || object.GroupVersionKind().Group == "rbac.authorization.k8s.io"
}

// rights returns the objects that define RBAC rights. The key is kind, namespace and name.
func rights(objects []*unstructured.Unstructured) map[string]any {
	return byName(slices.DeleteFunc(withoutLabels(objects, recommendedLabels...), func(o *unstructured.Unstructured) bool { return !isAboutRights(o) }))
}

// byName returns the objects as a map, so that their order does not matter in comparisons.
func byName(objects []*unstructured.Unstructured) map[string]any {
	result := map[string]any{}
	for _, o := range objects {
		result[byNameKey(o)] = o.Object
	}
	return result
}

// byNameKey returns the key of an object in the map: kind, namespace and name.
func byNameKey(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// file returns the objects in a file of manifests.
func file(t *testing.T, elements ...string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{root}, elements...)...))
	require.NoError(t, err)
	objects, err := render.Decode(content)
	require.NoError(t, err)
	return objects
}

// TestRenderedRightsAreTheProvedOnes checks that other tests run the programs with exactly the rendered RBAC rights.
// test/integration runs celset-scheduler. test/cmd/celset-placement and the demo of Placements run celset-placement's
// controller.
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

// TestPodsRunAsTheAccounts checks that the rendered rights include the ServiceAccount of each pod.
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
