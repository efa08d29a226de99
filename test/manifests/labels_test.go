// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	recommended = "app.kubernetes.io/"
	managedBy   = recommended + "managed-by"
)

// recommendedLabels are the labels that all objects of celset must have.
var recommendedLabels = []string{recommended + "name", recommended + "component", recommended + "part-of", recommended + "version", managedBy}

// withoutLabels returns copies of the objects. The labels with these names are removed from the objects and from their pod
// templates.
func withoutLabels(objects []*unstructured.Unstructured, names ...string) (without []*unstructured.Unstructured) {
	for _, object := range objects {
		object = object.DeepCopy()
		for _, fields := range [][]string{{"metadata", "labels"}, {"spec", "template", "metadata", "labels"}} {
			for _, name := range names {
				unstructured.RemoveNestedField(object.Object, append(slices.Clone(fields), name)...)
			}
			if labels, found, err := unstructured.NestedMap(object.Object, fields...); err == nil && found && len(labels) == 0 {
				unstructured.RemoveNestedField(object.Object, fields...)
			}
		}
		without = append(without, object)
	}
	return without
}

// requireLabels requires the recommended labels on an object and on its pod template. Its selectors must not contain labels
// that change with the version.
func requireLabels(t *testing.T, object *unstructured.Unstructured, tool string) {
	t.Helper()
	name := object.GetKind() + " " + object.GetName()
	demand := func(labels map[string]string) {
		t.Helper()
		component := labels[recommended+"component"]
		require.Contains(t, []string{"scheduler", "placement", "webhook", "topology-driver"}, component, name)
		require.Equal(t, "celset-"+component, labels[recommended+"name"], name)
		require.Equal(t, "celset", labels[recommended+"part-of"], name)
		require.Equal(t, "dev", labels[recommended+"version"], name)
		require.Equal(t, tool, labels[managedBy], name)
	}
	demand(object.GetLabels())
	pods, found, err := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
	require.NoError(t, err)
	if found {
		demand(pods)
		require.Equal(t, object.GetLabels()[recommended+"component"], pods[recommended+"component"], name)
	}
	requireSelectors(t, name, object.Object)
}

// requireSelectors checks all label selectors in an object. value is a part of the object.
func requireSelectors(t *testing.T, name string, value any) {
	t.Helper()
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			labels, isMap := field.(map[string]any)
			if isMap && (key == "matchLabels" || key == "selector") {
				for label := range labels {
					changes := strings.HasPrefix(label, recommended) && label != recommended+"name" && label != recommended+"instance"
					require.False(t, changes, "%s selects by %s", name, label)
				}
			}
			requireSelectors(t, name, field)
		}
	case []any:
		for _, item := range value {
			requireSelectors(t, name, item)
		}
	}
}

func TestKustomizationsHaveLabels(t *testing.T) {
	seen := 0
	for _, folder := range kustomizations(t) {
		if slices.Contains(components, folder) || strings.HasPrefix(folder, "labels/") {
			continue
		}
		for _, object := range rendered(t, folder) {
			seen++
			requireLabels(t, object, "kustomize")
		}
	}
	require.Greater(t, seen, 100)
}

// TestChartHasLabels checks the labels of chart objects that TestAPIServerTakesTheChart does not render.
func TestChartHasLabels(t *testing.T) {
	objects := template(t, "webhook.enabled=true", "webhook.guard.enabled=true", "placement.enabled=true", "placement.crds=true", "placement.multiKueue=true",
		"placement.inventory=ClusterProfile", "placement.inventoryNamespace=fleet", "topologyDriver.enabled=true",
		"monitoring.podMonitors=true", "monitoring.rules=true", "monitoring.dashboards=true", "monitoring.labels.release=prometheus")
	for _, object := range objects {
		requireLabels(t, object, "Helm")
		if strings.HasPrefix(object.GetAPIVersion(), "monitoring.coreos.com/") {
			require.Equal(t, "prometheus", object.GetLabels()["release"], "the value monitoring.labels adds labels")
		}
	}
}

// TestChartHasDashboards checks that the chart renders a dashboard for each enabled program, in a ConfigMap with the label that
// Grafana's sidecar looks for.
func TestChartHasDashboards(t *testing.T) {
	objects := template(t, "webhook.enabled=true", "placement.enabled=true", "topologyDriver.enabled=true", "monitoring.dashboards=true")
	for name, file := range map[string]string{
		"celset-scheduler": "celset.json", "celset-placement": "celset-placement.json", "celset-webhook": "celset-webhook.json", "celset-topology-driver": "celset-topology-driver.json",
	} {
		want, err := os.ReadFile(filepath.Join(root, "dashboards", file))
		require.NoError(t, err)
		dashboard := find(t, objects, "ConfigMap", name+"-dashboard")
		require.Equal(t, "1", dashboard.GetLabels()["grafana_dashboard"])
		kind := "Deployment"
		if name == "celset-topology-driver" {
			kind, name = "DaemonSet", name+"-ring"
		}
		require.Equal(t, find(t, objects, kind, name).GetNamespace(), dashboard.GetNamespace())
		data, _, err := unstructured.NestedStringMap(dashboard.Object, "data")
		require.NoError(t, err)
		require.Equal(t, map[string]string{file: string(want)}, data)
	}
	for _, object := range template(t, "webhook.enabled=true", "placement.enabled=true", "topologyDriver.enabled=true") {
		require.NotContains(t, object.GetName(), "-dashboard", "dashboards are off by default")
	}
}
