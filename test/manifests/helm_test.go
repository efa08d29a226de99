// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"crypto/sha256"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/celset/celset/internal/render"
)

const chart = root + "/charts/celset"

// buildHelm builds bin/helm, once in a run. Of a make that runs the tests it does not
// know.
var buildHelm = sync.OnceValues(func() ([]byte, error) {
	command := exec.Command("make", "-s", "bin/helm")
	command.Dir = "../.."
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "MAKE") || strings.HasPrefix(variable, "MFLAGS=")
	})
	return command.CombinedOutput()
})

// helm runs helm and returns what it printed.
func helm(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds helm")
	}
	output, err := buildHelm()
	require.NoError(t, err, "%s", output)
	command := exec.CommandContext(t.Context(), "../../bin/helm", args...)
	// It has no cluster to talk to, and no configuration.
	command.Env = append(os.Environ(), "KUBECONFIG=/dev/null", "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
	var out, messages bytes.Buffer
	command.Stdout, command.Stderr = &out, &messages
	if err := command.Run(); err != nil {
		return messages.String(), err
	}
	return out.String(), nil
}

// template renders the chart with values that are set as in "--set".
func template(t *testing.T, values ...string) []*unstructured.Unstructured {
	t.Helper()
	output, err := helm(t, "template", "celset", chart, "--namespace=kube-system", "--kube-version=1.37.1", "--set="+strings.Join(values, ","))
	require.NoError(t, err, output)
	objects, err := render.Decode([]byte(output))
	require.NoError(t, err)
	return objects
}

// switches are all that turn something on or off, or choose.
var switches = [][]string{
	{"scheduler.enabled=true", "scheduler.enabled=false"},
	{"scheduler.mode=default", "scheduler.mode=second"},
	{"scheduler.featureGates.DRACELDeviceConstraint=true", "scheduler.featureGates.DRACELDeviceConstraint=false"},
	{"placement.enabled=true", "placement.enabled=false"},
	{"placement.bindings=true", "placement.bindings=false"},
	{"placement.crds=true", "placement.crds=false"},
	{"placement.allPlacements=true", "placement.allPlacements=false"},
}

// combinations are those of one choice of each switch.
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

// TestAPIServerTakesTheChart renders every combination of switches. An object that is
// the same in several is validated once.
func TestAPIServerTakesTheChart(t *testing.T) {
	server := server(t)
	seen := map[[sha256.Size]byte]bool{}
	all := combinations(switches)
	require.Len(t, all, 128)
	for _, values := range all {
		objects := template(t, values...)
		require.Equal(t, slices.Contains(values, "scheduler.enabled=true") || slices.Contains(values, "placement.enabled=true"), len(objects) > 0, values)
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

// TestAPIServerTakesOtherValues sets what is empty by default.
func TestAPIServerTakesOtherValues(t *testing.T) {
	objects := template(t, "image.registry=registry.example.com/celset/", "image.tag=v1", "image.pullSecrets[0].name=key",
		"scheduler.replicas=3", "scheduler.extraArgs[0]=--v=4", "scheduler.nodeSelector.pool=system", "scheduler.priorityClassName=",
		"scheduler.tolerations[0].operator=Exists", "scheduler.resources.limits.cpu=2", "scheduler.featureGates.DRADeviceTaintRules=true",
		"scheduler.config=apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration",
		"placement.enabled=true", "placement.replicas=1", "placement.extraArgs[0]=--workers=2", "placement.nodeSelector.pool=system",
		"placement.tolerations[0].operator=Exists", "placement.resources.requests.cpu=1")
	server(t).dryRun(t, objects)
	deployment := find(t, objects, "Deployment", "celset-scheduler")
	args, err := render.Args(deployment)
	require.NoError(t, err)
	require.Equal(t, []string{
		"--config=/etc/celset-scheduler/config.yaml", "--feature-gates=DRACELDeviceConstraint=true,DRADeviceTaintRules=true",
		"--secure-port=10259", "--leader-elect-resource-name=kube-scheduler", "--v=4",
	}, args)
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	require.Equal(t, "registry.example.com/celset/celset-scheduler:v1", containers[0].(map[string]any)["image"])
	config := find(t, objects, "ConfigMap", "celset-scheduler-config")
	content, _, err := unstructured.NestedString(config.Object, "data", "config.yaml")
	require.NoError(t, err)
	require.Equal(t, "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration", strings.TrimSpace(content))
}

// TestChartRendersWhatKustomizeRenders compares all objects, with the rights among them.
func TestChartRendersWhatKustomizeRenders(t *testing.T) {
	for overlay, values := range map[string][]string{
		"default-scheduler":    nil,
		"second-scheduler":     {"scheduler.mode=second"},
		"placement":            {"scheduler.enabled=false", "placement.enabled=true"},
		"placement-standalone": {"scheduler.enabled=false", "placement.enabled=true", "placement.crds=true", "placement.bindings=true"},
	} {
		t.Run(overlay, func(t *testing.T) {
			fromHelm, fromKustomize := template(t, values...), rendered(t, "overlays/"+overlay)
			require.NotEmpty(t, rights(fromHelm))
			require.Empty(t, cmp.Diff(rights(fromKustomize), rights(fromHelm)), "rights")
			require.Empty(t, cmp.Diff(byName(normalized(t, fromKustomize)), byName(normalized(t, fromHelm))))
		})
	}
}

// normalized takes away how changes of the configuration come to pods, and what tells
// helm what to keep: that is where the two differ on purpose.
func normalized(t *testing.T, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	const config = "celset-scheduler-config"
	for _, object := range objects {
		switch object.GetKind() {
		case "ConfigMap":
			require.True(t, strings.HasPrefix(object.GetName(), config))
			object.SetName(config)
		case "CustomResourceDefinition":
			unstructured.RemoveNestedField(object.Object, "metadata", "annotations", "helm.sh/resource-policy")
		case "Deployment":
			unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "annotations")
			volumes, found, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "volumes")
			require.NoError(t, err)
			if found {
				require.NoError(t, unstructured.SetNestedField(volumes[0].(map[string]any), config, "configMap", "name"))
				require.NoError(t, unstructured.SetNestedSlice(object.Object, volumes, "spec", "template", "spec", "volumes"))
			}
		}
	}
	return objects
}

func TestSchemaRefusesMistakes(t *testing.T) {
	for name, test := range map[string]struct{ set, err string }{
		"unknown mode":     {"scheduler.mode=third", "/scheduler/mode"},
		"unknown value":    {"scheduler.replica=1", "additional properties 'replica' not allowed"},
		"unknown part":     {"schedulers.enabled=true", "additional properties 'schedulers' not allowed"},
		"gate that is not": {"scheduler.featureGates.DRACELDeviceConstraint=yes", "/scheduler/featureGates/DRACELDeviceConstraint"},
		"no tag":           {"image.tag=", "/image/tag"},
	} {
		t.Run(name, func(t *testing.T) {
			output, err := helm(t, "template", "celset", chart, "--set="+test.set)
			require.Error(t, err)
			require.Contains(t, output, test.err)
		})
	}
}

func TestLint(t *testing.T) {
	output, err := helm(t, "lint", "--strict", chart)
	require.NoError(t, err, output)
}
