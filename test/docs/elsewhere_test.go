// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/plugin"
)

// elsewhere is what an API server does not take, and how it is checked instead.
type elsewhere struct {
	what  string
	is    func(block) bool
	check func(*testing.T, block)
}

var notForTheAPIServer = []elsewhere{
	// What it renders is applied in test/manifests.
	{what: "kustomization", is: hasAPIVersion("kustomize.config.k8s.io/"), check: checkKustomization},
	// So is what it patches: that kustomize can apply it is known then.
	{what: "patch", is: isPatch, check: checkYAML},
	{what: "scheduler configuration", is: hasAPIVersion("kubescheduler.config.k8s.io/"), check: checkSchedulerConfiguration},
	{what: "part of a scheduler profile", is: func(b block) bool { return strings.HasPrefix(b.text, "pluginConfig:") }, check: checkPluginConfig},
	{what: "configuration of kind", is: hasAPIVersion("kind.x-k8s.io/"), check: checkKind},
	// Kustomizations name it, and what becomes of their objects is in test/manifests.
	{what: "transformer of kustomize", is: hasAPIVersion("builtin"), check: checkYAML},
	// What becomes of it on the decisions of a hub is in test/integration/placement.
	{what: "ApplicationSet", is: hasAPIVersion("argoproj.io/"), check: checkYAML},
	// The chart is rendered, and what comes out is applied, in test/manifests.
	{what: "part of the Helm chart", is: inChart, check: checkInChart},
	{what: "part of an object", is: isPart, check: checkYAML},
}

// whole are the pages, and folders, in which every block of YAML is made of whole
// objects. In the other pages a block without any apiVersion is part of one.
var whole = []string{"README.md", "docs/placement.md", "docs/ocm.md", "docs/hardware/", "docs/getting-started.md"}

func isPart(b block) bool {
	return b.line > 0 && !strings.Contains(b.text, "apiVersion:") &&
		!slices.ContainsFunc(whole, func(prefix string) bool { return strings.HasPrefix(b.page, prefix) })
}

func checkYAML(t *testing.T, b block) {
	var part any
	require.NoError(t, yaml.UnmarshalStrict([]byte(b.text), &part))
	require.NotEmpty(t, part)
}

// hasAPIVersion tells whether a document is of a group that no API server serves.
func hasAPIVersion(prefix string) func(block) bool {
	return func(b block) bool {
		return !inChart(b) && slices.ContainsFunc(strings.Split(b.text, "\n"), func(line string) bool {
			return strings.HasPrefix(line, "apiVersion: "+prefix)
		})
	}
}

// elsewhereOf finds how a block is checked if not by an API server.
func elsewhereOf(b block) (elsewhere, bool) {
	i := slices.IndexFunc(notForTheAPIServer, func(e elsewhere) bool { return e.is(b) })
	if i < 0 {
		return elsewhere{}, false
	}
	return notForTheAPIServer[i], true
}

// TestRestIsCheckedElsewhere checks what TestAPIServerTakesObjects leaves out.
func TestRestIsCheckedElsewhere(t *testing.T) {
	for _, b := range append(blocks(t, "yaml"), files(t)...) {
		if e, ok := elsewhereOf(b); ok {
			t.Run(e.what+" "+b.String(), func(t *testing.T) { e.check(t, b) })
		}
	}
}

// checkKustomization has kustomize refuse unknown and outdated fields.
func checkKustomization(t *testing.T, b block) {
	var kustomization types.Kustomization
	require.NoError(t, kustomization.Unmarshal([]byte(b.text)))
	require.Empty(t, kustomization.EnforceFields())
	require.Empty(t, *kustomization.CheckDeprecatedFields())
}

// isPatch tells whether the kustomization in its folder uses a file as a patch.
func isPatch(b block) bool {
	content, err := os.ReadFile(filepath.Join(root, path.Dir(b.page), "kustomization.yaml"))
	var kustomization types.Kustomization
	return err == nil && kustomization.Unmarshal(content) == nil && slices.ContainsFunc(kustomization.Patches, func(patch types.Patch) bool {
		return patch.Path == path.Base(b.page)
	})
}

// checkSchedulerConfiguration does what the scheduler does when it starts.
func checkSchedulerConfiguration(t *testing.T, b block) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(b.text), 0o600))
	config, err := options.LoadConfigFromFile(klog.Background(), file)
	require.NoError(t, err)
	require.NoError(t, validation.ValidateKubeSchedulerConfiguration(config))
	for _, profile := range config.Profiles {
		for _, plugin := range profile.PluginConfig {
			checkArgs(t, plugin)
		}
	}
}

// checkArgs decodes the arguments of our plugin; those of others are decoded already.
func checkArgs(t *testing.T, config schedulerconfig.PluginConfig) {
	t.Helper()
	if config.Name != plugin.Name {
		return
	}
	raw, ok := config.Args.(*runtime.Unknown)
	require.True(t, ok, "%T", config.Args)
	_, err := configv1alpha1.DecodeArgs(raw.Raw)
	require.NoError(t, err)
}

// checkPluginConfig completes a part of a profile.
func checkPluginConfig(t *testing.T, b block) {
	b.text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: any\n" + indented(b.text)
	checkSchedulerConfiguration(t, b)
}

func indented(text string) string {
	var result strings.Builder
	for line := range strings.Lines(text) {
		result.WriteString("  " + line)
	}
	return result.String()
}

// kindCluster has the fields of kind's configuration that we use.
type kindCluster struct {
	APIVersion    string            `json:"apiVersion"`
	Kind          string            `json:"kind"`
	Name          string            `json:"name"`
	FeatureGates  map[string]bool   `json:"featureGates"`
	RuntimeConfig map[string]string `json:"runtimeConfig"`
	Nodes         []struct {
		Role   string            `json:"role"`
		Image  string            `json:"image"`
		Labels map[string]string `json:"labels"`
	} `json:"nodes"`
	ContainerdConfigPatches []string `json:"containerdConfigPatches"`
}

// checkKind knows kind's configuration as far as we use it, and Kubernetes' gates.
func checkKind(t *testing.T, b block) {
	var config kindCluster
	require.NoError(t, yaml.UnmarshalStrict([]byte(b.text), &config))
	require.Equal(t, "kind.x-k8s.io/v1alpha4 Cluster", config.APIVersion+" "+config.Kind)
	known := utilfeature.DefaultMutableFeatureGate.GetAll()
	for gate := range config.FeatureGates {
		require.Contains(t, known, featuregate.Feature(gate))
	}
	for _, node := range config.Nodes {
		require.Contains(t, []string{"control-plane", "worker"}, node.Role)
	}
}

const charts = "manifests/charts/"

func inChart(b block) bool { return strings.HasPrefix(b.page, charts) }

// checkInChart knows the places of files in a chart: others would not be rendered.
func checkInChart(t *testing.T, b block) {
	_, inside, _ := strings.Cut(strings.TrimPrefix(b.page, charts), "/")
	if slices.Contains([]string{"Chart.yaml", "values.yaml"}, inside) {
		var content map[string]any
		require.NoError(t, yaml.UnmarshalStrict([]byte(b.text), &content))
		return
	}
	require.Contains(t, sets.New("templates", "files", "ci"), path.Dir(inside), fmt.Sprintf("%s is nowhere used", b))
}

// pinned is an action that nobody can exchange, with its version for those who read it.
var pinned = regexp.MustCompile(`^\s*-?\s*uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)

// TestActionsArePinned: a tag can be moved to other code. That workflows are well-formed
// actionlint finds out, in "make lint".
func TestActionsArePinned(t *testing.T) {
	seen := 0
	for _, file := range below(".github/workflows", ".yaml") {
		var workflow map[string]any
		content, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(content, &workflow), file)
		require.Contains(t, workflow, "permissions", "%s has all rights", file)
		for line := range strings.Lines(string(content)) {
			if strings.Contains(line, "uses:") {
				seen++
				require.Regexp(t, pinned, strings.TrimRight(line, "\n"), file)
			}
		}
	}
	require.Positive(t, seen)
}
