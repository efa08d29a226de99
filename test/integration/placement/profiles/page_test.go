// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	profilev1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/render"
)

var blocks = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// TestPage applies the objects in docs/ocm.md. They must lead to the decision that the page shows.
func TestPage(t *testing.T) {
	root, err := controlplane.ModuleRoot()
	require.NoError(t, err)
	content, err := os.ReadFile(filepath.Join(root, "docs", "ocm.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(content), "\n## Clusters from another inventory\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	run(t)
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
	var shown string
	for _, block := range blocks.FindAllStringSubmatch(section, -1) {
		switch {
		case strings.Contains(block[2], "kind: Kustomization"):
		case block[1] == "yaml":
			apply(t, block[2])
		case strings.Contains(block[2], "kind: PlacementDecision"):
			shown = block[2]
		}
	}
	t.Cleanup(func() {
		fleet := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fleet}}
		require.NoError(t, shared.Get(context.Background(), client.ObjectKeyFromObject(fleet), fleet))
		fleet.Labels = nil
		require.NoError(t, shared.Update(context.Background(), fleet))
	})
	team("team").requireSelected(t, "training", "paris")
	var want profilev1alpha1.PlacementDecision
	require.NoError(t, yaml.UnmarshalStrict([]byte(shown), &want))
	got := team("team").published(t, "training")["training-decision-1"]
	require.Equal(t, want.Labels, got.Labels)
	require.Equal(t, want.Decisions, got.Decisions)
	require.Equal(t, want.SchedulerName, got.SchedulerName)
}

// apply applies the objects in a code block, and writes their status as a cluster manager would.
func apply(t *testing.T, block string) {
	t.Helper()
	config := shared.RESTConfig()
	_, err := controlplane.Apply(t.Context(), config, []byte(block), controlplane.ApplyOptions{})
	require.NoError(t, err)
	objects, err := render.Decode([]byte(block))
	require.NoError(t, err)
	for _, object := range objects {
		if object.GetKind() != "Namespace" {
			t.Cleanup(func() { require.NoError(t, client.IgnoreNotFound(shared.Delete(context.Background(), object))) })
		}
		if status, ok := object.Object["status"]; ok {
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(object.GroupVersionKind())
			require.NoError(t, shared.Get(t.Context(), client.ObjectKeyFromObject(object), live))
			live.Object["status"] = status
			require.NoError(t, shared.Status().Update(t.Context(), live))
		}
	}
}
