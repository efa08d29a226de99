// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/celset/celset/test/internal/helm"
	"github.com/celset/celset/test/internal/render"
)

const (
	chart = root + "/charts/celset"
	// registry is the image registry in the values of the rendered chart.
	registry = "registry.example.com/celset"
)

// runHelm runs helm and returns its output.
func runHelm(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	return helm.Run(t, args...)
}

// template renders the chart. Each of values is the value of a flag --set.
func template(t *testing.T, values ...string) []*unstructured.Unstructured {
	t.Helper()
	output, err := runHelm(t, "template", "celset", chart, "--namespace=kube-system", "--kube-version=1.37.2",
		"--set=image.registry="+registry, "--set="+strings.Join(values, ","))
	require.NoError(t, err, output)
	objects, err := render.Decode([]byte(output))
	require.NoError(t, err)
	return objects
}

// switches maps a part of the chart to its switches. Each switch is a list of alternative values. TestAPIServerTakesOtherValues
// tests other values.
var switches = map[string][][]string{
	"scheduler": {
		{"scheduler.mode=default", "scheduler.mode=second"},
		{"scheduler.featureGates.DRACELDeviceConstraint=true", "scheduler.featureGates.DRACELDeviceConstraint=false"},
	},
	"placement": {
		{"placement.bindings=true", "placement.bindings=false"},
		{"placement.crds=true", "placement.crds=false"},
	},
	"webhook": {
		{"webhook.certificates.from=self", "webhook.certificates.from=cert-manager", "webhook.certificates.from=secret"},
		{"webhook.policy=true", "webhook.policy=false"},
	},
}

// driverSwitches are the switches of the part topologyDriver.
var driverSwitches = [][]string{{"topologyDriver.topology=ring", "topologyDriver.topology=mesh"}}

// allCombinations returns all combinations of parts, each disabled or enabled with one choice of each switch. Each combination
// gets the next of the topology driver's three choices. Because the other parts have five or seven choices, each pair of
// choices occurs in some combination.
func allCombinations() [][]string {
	result := [][]string{nil}
	for _, part := range slices.Sorted(maps.Keys(switches)) {
		var next [][]string
		for _, before := range result {
			for _, choice := range choices(part, switches[part]) {
				next = append(next, slices.Concat(before, choice))
			}
		}
		result = next
	}
	dealt := choices("topologyDriver", driverSwitches)
	for i := range result {
		result[i] = slices.Concat(result[i], dealt[i%len(dealt)])
	}
	return result
}

// choices returns the choices of a part: disabled, or enabled with one choice of each switch.
func choices(part string, switches [][]string) [][]string {
	result := [][]string{{part + ".enabled=false"}}
	for _, combination := range combinations(switches) {
		result = append(result, append(combination, part+".enabled=true"))
	}
	return result
}

// combinations returns all combinations of one choice of each switch.
func combinations(switches [][]string) [][]string {
	if len(switches) == 0 {
		return [][]string{nil}
	}
	var result [][]string
	for _, rest := range combinations(switches[1:]) {
		for _, choice := range switches[0] {
			result = append(result, append([]string{choice}, rest...))
		}
	}
	return result
}

// bundle returns the CA certificate that complete has created for the overlay webhook/secret.
func bundle(t *testing.T) string {
	t.Helper()
	certificate, err := os.ReadFile(filepath.Join(completed, "webhook", "secret", "ca.crt"))
	require.NoError(t, err)
	return base64.StdEncoding.EncodeToString(certificate)
}

// TestAPIServerTakesTheChart renders each combination of switches, and makes the API server validate each distinct object once.
func TestAPIServerTakesTheChart(t *testing.T) {
	server := server(t)
	seen := map[[sha256.Size]byte]bool{}
	all := allCombinations()
	require.Len(t, all, 5*5*7)
	for _, values := range all {
		objects := template(t, append(slices.Clone(values), "webhook.certificates.caBundle="+bundle(t))...)
		parts := slices.DeleteFunc(slices.Clone(values), func(value string) bool { return !strings.HasSuffix(value, ".enabled=true") })
		require.Equal(t, len(parts) > 0, len(objects) > 0, values)
		require.Len(t, byName(objects), len(objects), "objects that are there twice")
		for _, object := range objects {
			requireLabels(t, object, "Helm")
		}
		objects = slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool {
			content, err := object.MarshalJSON()
			require.NoError(t, err)
			sum := sha256.Sum256(content)
			known := seen[sum]
			seen[sum] = true
			return known
		})
		if len(objects) > 0 {
			t.Run(strings.Join(values, ","), func(t *testing.T) { server.dryRun(t, objects) })
		}
	}
	t.Logf("%d objects", len(seen))
}

// TestAPIServerTakesOtherValues sets chart values that are empty by default, and makes the API server validate the objects.
func TestAPIServerTakesOtherValues(t *testing.T) {
	objects := template(t, "image.registry=registry.example.com/celset/", "image.tag=v1", "image.pullSecrets[0].name=key",
		"scheduler.replicas=3", "scheduler.extraArgs[0]=--v=4", "scheduler.nodeSelector.pool=system", "scheduler.priorityClassName=",
		"scheduler.tolerations[0].operator=Exists", "scheduler.resources.limits.cpu=2", "scheduler.featureGates.DRADeviceTaintRules=true",
		"scheduler.config=apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration",
		"placement.enabled=true", "placement.replicas=1", "placement.allPlacements=true", "placement.extraArgs[0]=--concurrent-placement-syncs=2", "placement.nodeSelector.pool=system",
		"placement.tolerations[0].operator=Exists", "placement.resources.requests.cpu=1",
		"webhook.enabled=true", "webhook.replicas=3", "webhook.schedulerNames={a,b}", "webhook.placements=true", "webhook.extraArgs[0]=--v=2", "webhook.nodeSelector.pool=system",
		"webhook.guard.enabled=true", "webhook.guard.failurePolicy=Ignore",
		"webhook.tolerations[0].operator=Exists", "webhook.priorityClassName=", "webhook.certificates.secretName=mine",
		"topologyDriver.enabled=true", "topologyDriver.nodeSelector.pool=fake", "topologyDriver.kubeletDir=/var/lib/k0s/kubelet",
		"topologyDriver.extraArgs[0]=--devices=12", "topologyDriver.tolerations[0].operator=Exists", "topologyDriver.resources.requests.cpu=1")
	server(t).dryRun(t, objects)
	for name, want := range map[string][]string{
		"celset-topology-driver-ring": {"--topology=ring", "--kubelet-root-dir=/var/lib/k0s/kubelet", "--devices=12"},
		"celset-scheduler": {
			"--config=/etc/celset-scheduler/config.yaml", "--feature-gates=DRACELDeviceConstraint=true,DRADeviceTaintRules=true",
			"--secure-port=10259", "--leader-elect-resource-name=kube-scheduler", "--v=4",
		},
		"celset-placement": {"--leader-elect-resource-namespace=celset-system", "--all-placements", "--concurrent-placement-syncs=2"},
		"celset-webhook":   {"--scheduler-names=a,b", "--logging-format=json", "--check-placements", "--all-placements", "--guard-allocations", "--guard-pod=$(POD_NAME)", "--v=2"},
	} {
		kind := "Deployment"
		if strings.HasPrefix(name, "celset-topology-driver") {
			kind = "DaemonSet"
		}
		args, err := render.Args(find(t, objects, kind, name))
		require.NoError(t, err)
		require.Equal(t, want, args)
	}
	requirePlacementsSent(t, objects)
	deployment := find(t, objects, "Deployment", "celset-scheduler")
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	require.Equal(t, "registry.example.com/celset/celset-scheduler:v1", containers[0].(map[string]any)["image"])
	config := find(t, objects, "ConfigMap", "celset-scheduler-config")
	content, _, err := unstructured.NestedString(config.Object, "data", "config.yaml")
	require.NoError(t, err)
	require.Equal(t, "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration", strings.TrimSpace(content))
}

// requirePlacementsSent requires that the API server sends all Placements to the webhook if celset-placement decides all of
// them. Otherwise only annotated Placements are sent.
func requirePlacementsSent(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	webhooks, _, err := unstructured.NestedSlice(find(t, objects, "ValidatingWebhookConfiguration", "celset-webhook").Object, "webhooks")
	require.NoError(t, err)
	i := slices.IndexFunc(webhooks, func(webhook any) bool { return webhook.(map[string]any)["name"] == "placements.celset.dev" })
	require.GreaterOrEqual(t, i, 0)
	require.NotContains(t, webhooks[i], "matchConditions")
}

// TestChartRendersWhatKustomizeRenders checks that chart and kustomizations render the same objects, including the RBAC rights.
func TestChartRendersWhatKustomizeRenders(t *testing.T) {
	for overlay, values := range map[string][]string{
		"default-scheduler":    nil,
		"second-scheduler":     {"scheduler.mode=second"},
		"placement":            {"scheduler.enabled=false", "placement.enabled=true"},
		"placement-multikueue": {"scheduler.enabled=false", "placement.enabled=true", "placement.multiKueue=true"},
		"placement-standalone": {"scheduler.enabled=false", "placement.enabled=true", "placement.crds=true", "placement.bindings=true"},
		"placement-clusterprofiles": {
			"scheduler.enabled=false", "placement.enabled=true", "placement.crds=true", "placement.bindings=true",
			"placement.inventory=ClusterProfile", "placement.inventoryNamespace=fleet", "placement.profileDecisions=true",
		},
		"topology-driver-ring":    {"scheduler.enabled=false", "topologyDriver.enabled=true"},
		"topology-driver-mesh":    {"scheduler.enabled=false", "topologyDriver.enabled=true", "topologyDriver.topology=mesh"},
		"placement-webhook":       {"scheduler.enabled=false", "webhook.enabled=true", "webhook.placements=true"},
		"webhook-guard":           {"scheduler.enabled=false", "webhook.enabled=true", "webhook.guard.enabled=true"},
		"../webhook/default":      {"scheduler.enabled=false", "webhook.enabled=true"},
		"../webhook/cert-manager": {"scheduler.enabled=false", "webhook.enabled=true", "webhook.certificates.from=cert-manager"},
		"../webhook/secret": {"scheduler.enabled=false", "webhook.enabled=true", "webhook.certificates.from=secret",
			"webhook.certificates.caBundle=" + bundle(t)},
	} {
		t.Run(overlay, func(t *testing.T) {
			fromHelm, fromKustomize := template(t, values...), rendered(t, "overlays/"+overlay)
			require.NotEmpty(t, rights(fromHelm))
			require.Empty(t, cmp.Diff(rights(fromKustomize), rights(fromHelm)), "rights")
			require.Empty(t, cmp.Diff(byName(normalized(t, fromKustomize)), byName(normalized(t, fromHelm))))
		})
	}
}

// normalized removes the intended differences between chart and kustomizations: the label with the name of the tool, the
// mechanism that restarts pods after a change of their configuration, and the annotation that makes helm keep an object.
func normalized(t *testing.T, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	const config = "celset-scheduler-config"
	// The kustomization creates a Secret. The chart expects that it exists.
	objects = slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool { return object.GetKind() == "Secret" })
	objects = withoutLabels(objects, managedBy)
	for _, object := range objects {
		switch object.GetKind() {
		case "ConfigMap":
			require.True(t, strings.HasPrefix(object.GetName(), config))
			object.SetName(config)
		case "ValidatingWebhookConfiguration":
			unwrapBundles(t, object)
		case "CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
			unstructured.RemoveNestedField(object.Object, "metadata", "annotations", "helm.sh/resource-policy")
			if len(object.GetAnnotations()) == 0 {
				unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
			}
		case "Deployment", "DaemonSet":
			unnameRegistry(t, object)
			unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "annotations")
			volumes, found, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "volumes")
			require.NoError(t, err)
			if found && object.GetName() == "celset-scheduler" {
				require.NoError(t, unstructured.SetNestedField(volumes[0].(map[string]any), config, "configMap", "name"))
				require.NoError(t, unstructured.SetNestedSlice(object.Object, volumes, "spec", "template", "spec", "volumes"))
			}
		}
	}
	return objects
}

// unnameRegistry removes the registry from images, because kustomizations don't contain a registry.
func unnameRegistry(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	for _, container := range containers {
		fields := container.(map[string]any)
		fields["image"] = strings.TrimPrefix(fields["image"].(string), registry+"/")
	}
	require.NoError(t, unstructured.SetNestedSlice(object.Object, containers, "spec", "template", "spec", "containers"))
}

// unwrapBundles removes line breaks from CA bundles. kustomize keeps them, but they have no meaning.
func unwrapBundles(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	require.NoError(t, err)
	for _, webhook := range webhooks {
		config := webhook.(map[string]any)["clientConfig"].(map[string]any)
		if bundle, ok := config["caBundle"].(string); ok {
			config["caBundle"] = strings.ReplaceAll(bundle, "\n", "")
		}
	}
	object.Object["webhooks"] = webhooks
}

func TestSchemaRefusesMistakes(t *testing.T) {
	for name, test := range map[string]struct{ set, err string }{
		"unknown mode":     {"scheduler.mode=third", "/scheduler/mode"},
		"unknown value":    {"scheduler.replica=1", "additional properties 'replica' not allowed"},
		"no namespace":     {"placement.inventory=ClusterProfile", "minLength"},
		"no profiles":      {"placement.profileDecisions=true", "value must be false"},
		"unknown part":     {"schedulers.enabled=true", "additional properties 'schedulers' not allowed"},
		"gate that is not": {"scheduler.featureGates.DRACELDeviceConstraint=yes", "/scheduler/featureGates/DRACELDeviceConstraint"},
		"unknown gate":     {"scheduler.featureGates.DRACELDeviceConstraints=true", "additional properties 'DRACELDeviceConstraints' not allowed"},
		"no tag":           {"image.tag=", "/image/tag"},
		"no registry":      {"image.registry=", "image.registry: this chart is none of a release, and names no registry; set image.registry"},
		"no topology":      {"topologyDriver.topology=star", "/topologyDriver/topology"},
		"no bundle":        {"webhook.enabled=true,webhook.certificates.from=secret", "webhook.certificates.caBundle: the API server needs it"},
	} {
		t.Run(name, func(t *testing.T) {
			output, err := runHelm(t, "template", "celset", chart, "--set=image.registry="+registry, "--set="+test.set)
			require.Error(t, err)
			require.Contains(t, output, test.err)
		})
	}
}

func TestLint(t *testing.T) {
	output, err := runHelm(t, "lint", "--strict", chart)
	require.NoError(t, err, output)
}
