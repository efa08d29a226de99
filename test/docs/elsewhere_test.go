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
	"github.com/celset/celset/cmd/kubectl-celset/suite"
	"github.com/celset/celset/plugin"
)

// elsewhere describes a kind of YAML block that an API server does not accept. is recognizes the blocks, check checks them.
type elsewhere struct {
	what  string
	is    func(block) bool
	check func(*testing.T, block)
}

var notForTheAPIServer = []elsewhere{
	// This check covers only fields. test/manifests applies the objects that the kustomization renders.
	{what: "kustomization", is: hasAPIVersion("kustomize.config.k8s.io/"), check: checkKustomization},
	// This check covers only syntax. test/manifests applies the patched objects, and so checks that the patch applies.
	{what: "patch", is: isPatch, check: checkYAML},
	{what: "scheduler configuration", is: hasAPIVersion("kubescheduler.config.k8s.io/"), check: checkSchedulerConfiguration},
	{what: "part of a scheduler profile", is: func(b block) bool { return strings.HasPrefix(b.text, "pluginConfig:") }, check: checkPluginConfig},
	{what: "configuration of kind", is: hasAPIVersion("kind.x-k8s.io/"), check: checkKind},
	// This check covers only syntax. test/manifests checks the objects that kustomizations transform.
	{what: "transformer of kustomize", is: hasAPIVersion("builtin"), check: checkYAML},
	// This check covers only syntax. test/integration/placement applies the ApplicationSet to decisions of a hub.
	{what: "ApplicationSet", is: hasAPIVersion("argoproj.io/"), check: checkYAML},
	// This check covers only syntax. test/integration/gangs creates the pods that the controllers of these kinds create.
	{what: "LeaderWorkerSet or JobSet", is: func(b block) bool {
		return strings.Contains(b.text, "\napiVersion: leaderworkerset.x-k8s.io/") || strings.Contains(b.text, "\napiVersion: jobset.x-k8s.io/")
	}, check: checkYAML},
	// This check covers only the folder of the file. test/manifests renders the chart and applies the result.
	// This check covers only the fields. test/cmd/kubectl-celset runs the cases.
	{what: "cases of kubectl celset test", is: hasAPIVersion("kubectl.celset.dev/"), check: checkCases},
	{what: "part of the Helm chart", is: inChart, check: checkInChart},
	{what: "part of an object", is: isPart, check: checkYAML},
}

// whole lists the pages and folders where every YAML block consists of whole objects. On other pages, a block without
// apiVersion is a part of an object.
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

func checkCases(t *testing.T, b block) {
	require.NoError(t, yaml.UnmarshalStrict([]byte(b.text), &suite.ExpressionTest{}))
}

// hasAPIVersion returns a function that recognizes blocks with an apiVersion of this prefix.
func hasAPIVersion(prefix string) func(block) bool {
	return func(b block) bool {
		return !inChart(b) && slices.ContainsFunc(strings.Split(b.text, "\n"), func(line string) bool {
			return strings.HasPrefix(line, "apiVersion: "+prefix)
		})
	}
}

// elsewhereOf returns the check for a block that an API server does not accept. It returns false for other blocks.
func elsewhereOf(b block) (elsewhere, bool) {
	i := slices.IndexFunc(notForTheAPIServer, func(e elsewhere) bool { return e.is(b) })
	if i < 0 {
		return elsewhere{}, false
	}
	return notForTheAPIServer[i], true
}

// TestRestIsCheckedElsewhere checks the blocks that TestAPIServerTakesObjects leaves out.
func TestRestIsCheckedElsewhere(t *testing.T) {
	for _, b := range append(blocks(t, "yaml"), files(t)...) {
		if e, ok := elsewhereOf(b); ok {
			t.Run(e.what+" "+b.String(), func(t *testing.T) { e.check(t, b) })
		}
	}
}

// checkKustomization requires that kustomize knows all fields and that none is deprecated.
func checkKustomization(t *testing.T, b block) {
	var kustomization types.Kustomization
	require.NoError(t, kustomization.Unmarshal([]byte(b.text)))
	require.Empty(t, kustomization.EnforceFields())
	require.Empty(t, *kustomization.CheckDeprecatedFields())
}

// isPatch reports whether the kustomization in a file's folder uses the file as a patch.
func isPatch(b block) bool {
	content, err := os.ReadFile(filepath.Join(root, path.Dir(b.page), "kustomization.yaml"))
	var kustomization types.Kustomization
	return err == nil && kustomization.Unmarshal(content) == nil && slices.ContainsFunc(kustomization.Patches, func(patch types.Patch) bool {
		return patch.Path == path.Base(b.page)
	})
}

// checkSchedulerConfiguration loads the configuration as the scheduler does on start.
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

// checkArgs decodes the arguments of our plugin. The decoder of the configuration decodes only the arguments of
// kube-scheduler's plugins.
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

// checkPluginConfig adds the missing parts of a profile to the block, and checks the result.
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

// kindCluster has the fields that our pages use of a kind cluster configuration.
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

// checkKind checks the fields of kind's configuration that we use, and Kubernetes' feature gates.
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

// checkInChart requires that a file of the chart is in a folder that helm renders.
func checkInChart(t *testing.T, b block) {
	_, inside, _ := strings.Cut(strings.TrimPrefix(b.page, charts), "/")
	if slices.Contains([]string{"Chart.yaml", "values.yaml"}, inside) {
		var content map[string]any
		require.NoError(t, yaml.UnmarshalStrict([]byte(b.text), &content))
		return
	}
	require.Contains(t, sets.New("templates", "files", "ci"), path.Dir(inside), fmt.Sprintf("%s is nowhere used", b))
}

// pinned matches a workflow step whose action is pinned to a commit. A comment names the version.
var pinned = regexp.MustCompile(`^\s*-?\s*uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)

// TestActionsArePinned requires that workflows pin actions to commits, because a tag can be moved to other code. "make lint"
// runs actionlint for all other mistakes in workflows.
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
