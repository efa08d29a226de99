// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/celset/celset/test/internal/render"
)

// watched maps each folder of manifests/monitoring to the program that it monitors, and to chart values that render the same
// objects.
var watched = map[string]struct {
	program string
	values  []string
}{
	"scheduler":       {"overlays/default-scheduler", nil},
	"placement":       {"overlays/placement", []string{"scheduler.enabled=false", "placement.enabled=true"}},
	"webhook":         {"webhook/default", []string{"scheduler.enabled=false", "webhook.enabled=true"}},
	"topology-driver": {"overlays/topology-driver-ring", []string{"scheduler.enabled=false", "topologyDriver.enabled=true"}},
}

// TestPodMonitorsFindPods checks that the selector, the namespace and the port of each PodMonitor match the program's pods.
func TestPodMonitorsFindPods(t *testing.T) {
	for folder, of := range watched {
		t.Run(folder, func(t *testing.T) {
			objects := rendered(t, "monitoring/"+folder)
			monitor := find(t, objects, "PodMonitor", "celset-"+folder)
			selector, _, err := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
			require.NoError(t, err)
			require.NotEmpty(t, selector)
			var ports []string
			for _, object := range rendered(t, of.program) {
				podLabels, found, err := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
				require.NoError(t, err)
				if found && object.GetNamespace() == monitor.GetNamespace() && labels.SelectorFromSet(selector).Matches(labels.Set(podLabels)) {
					jobLabel, _, err := unstructured.NestedString(monitor.Object, "spec", "jobLabel")
					require.NoError(t, err)
					require.Equal(t, "celset-"+folder, podLabels[jobLabel], "the alerts know it by this job")
					ports = append(ports, portsOf(t, object)...)
				}
			}
			endpoints, _, err := unstructured.NestedSlice(monitor.Object, "spec", "podMetricsEndpoints")
			require.NoError(t, err)
			require.Len(t, endpoints, 1)
			endpoint := endpoints[0].(map[string]any)
			require.Contains(t, ports, endpoint["port"])
			if endpoint["scheme"] != "https" {
				return
			}
			credentials, _, err := unstructured.NestedStringMap(endpoint, "authorization", "credentials")
			require.NoError(t, err)
			require.Equal(t, "token", credentials["key"])
			secret := find(t, objects, "Secret", credentials["name"])
			require.Equal(t, monitor.GetNamespace(), secret.GetNamespace(), "a PodMonitor sees no other secrets")
			account := find(t, objects, "ServiceAccount", secret.GetAnnotations()["kubernetes.io/service-account.name"])
			require.Equal(t, secret.GetNamespace(), account.GetNamespace())
		})
	}
}

// portsOf returns the names of the container ports of a workload.
func portsOf(t *testing.T, object *unstructured.Unstructured) []string {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	var result []string
	for _, container := range containers {
		ports, _, err := unstructured.NestedSlice(container.(map[string]any), "ports")
		require.NoError(t, err)
		for _, port := range ports {
			result = append(result, port.(map[string]any)["name"].(string))
		}
	}
	return result
}

// TestChartWatchesAsKustomizeDoes checks that the chart with monitoring renders the same additional objects as the folders of
// manifests/monitoring.
func TestChartWatchesAsKustomizeDoes(t *testing.T) {
	for folder, of := range watched {
		t.Run(folder, func(t *testing.T) {
			without := byName(template(t, of.values...))
			for name, test := range map[string]struct {
				values []string
				kinds  []string
			}{
				"both":        {[]string{"monitoring.podMonitors=true", "monitoring.rules=true"}, nil},
				"rules alone": {[]string{"monitoring.rules=true"}, []string{"PrometheusRule"}},
			} {
				want := slices.DeleteFunc(rendered(t, "monitoring/"+folder), func(object *unstructured.Unstructured) bool {
					return test.kinds != nil && !slices.Contains(test.kinds, object.GetKind())
				})
				objects := template(t, slices.Concat(of.values, test.values)...)
				got := slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool {
					_, there := without[byNameKey(object)]
					return there
				})
				require.Len(t, objects, len(without)+len(got), name)
				require.Empty(t, cmp.Diff(byName(withoutLabels(want, managedBy)), byName(withoutLabels(got, managedBy))), name)
			}
		})
	}
}

// TestAPIServerTakesTheMonitoringOfAll makes the API server validate the monitoring objects of all programs, with an additional
// label for Prometheus.
func TestAPIServerTakesTheMonitoringOfAll(t *testing.T) {
	objects := template(t, "placement.enabled=true", "webhook.enabled=true", "topologyDriver.enabled=true",
		"monitoring.podMonitors=true", "monitoring.rules=true", "monitoring.labels.release=prometheus")
	require.Len(t, byName(objects), len(objects), "objects that are there twice")
	seen := map[string]int{}
	for _, object := range objects {
		if object.GroupVersionKind().Group == "monitoring.coreos.com" {
			seen[object.GetKind()]++
			require.Equal(t, "prometheus", object.GetLabels()["release"])
			require.Equal(t, "celset", object.GetLabels()["app.kubernetes.io/part-of"])
		}
	}
	require.Equal(t, map[string]int{"PodMonitor": len(watched), "PrometheusRule": len(watched)}, seen)
	server(t).dryRun(t, objects)
}

// TestDryRunNoticesMistakesInMonitoring checks that the CRDs in testdata reject wrong objects.
func TestDryRunNoticesMistakesInMonitoring(t *testing.T) {
	monitor := find(t, rendered(t, "monitoring/scheduler"), "PodMonitor", "celset-scheduler")
	require.NoError(t, unstructured.SetNestedField(monitor.Object, "a", "spec", "jobLabels"))
	require.ErrorContains(t, server(t).apply(t, server(t).RESTConfig(), monitor), "spec.jobLabels")
	rule := find(t, rendered(t, "monitoring/scheduler"), "PrometheusRule", "celset-scheduler")
	groups, _, err := unstructured.NestedSlice(rule.Object, "spec", "groups")
	require.NoError(t, err)
	delete(groups[0].(map[string]any)["rules"].([]any)[0].(map[string]any), "expr")
	require.NoError(t, unstructured.SetNestedSlice(rule.Object, groups, "spec", "groups"))
	require.ErrorContains(t, server(t).apply(t, server(t).RESTConfig(), rule), "expr: Required value")
}

// TestEverythingIsWatched checks that watched has an entry for each program in the overlays.
func TestEverythingIsWatched(t *testing.T) {
	for _, folder := range kustomizations(t) {
		for _, object := range rendered(t, folder) {
			args, err := render.Args(object)
			if object.GetKind() == "ConfigMap" || err != nil || len(args) == 0 {
				continue
			}
			podLabels, _, err := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
			require.NoError(t, err)
			require.Contains(t, watched, podLabels["app.kubernetes.io/name"][len("celset-"):], folder)
		}
	}
}
