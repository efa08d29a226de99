// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/hub"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/render"
)

// root is the root of the module.
const root = "../.."

// pages lists all pages of the documentation.
var pages = append([]string{"README.md"}, below("docs", ".md")...)

// below returns the files with the suffix in the folder and its subfolders.
func below(folder, suffix string) []string {
	var result []string
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, suffix) {
			path, err = filepath.Rel(root, path)
			result = append(result, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil || len(result) == 0 {
		panic(fmt.Sprintf("no *%s in %s: %v", suffix, folder, err))
	}
	return result
}

// A block is the text of a fenced code block, or of a whole file. line is its line in the page, or 0 for a whole file.
type block struct {
	page     string
	line     int
	language string
	text     string
}

func (b block) String() string {
	if b.line == 0 {
		return b.page
	}
	return fmt.Sprintf("%s:%d", b.page, b.line)
}

// blocks returns the code blocks of all pages in the given language.
func blocks(t *testing.T, language string) []block {
	t.Helper()
	var result []block
	for _, page := range pages {
		content, err := os.ReadFile(filepath.Join(root, page))
		require.NoError(t, err)
		found, err := parse(page, string(content))
		require.NoError(t, err)
		result = append(result, found...)
	}
	result = slices.DeleteFunc(result, func(b block) bool { return b.language != language })
	require.NotEmpty(t, result, "no %s in the documentation", language)
	return result
}

// parse returns the code blocks of a page. It removes the indentation of blocks in lists.
func parse(page, text string) ([]block, error) {
	const fence = "```"
	var result []block
	var open *block
	indent := 0
	line := 0
	for content := range strings.Lines(text) {
		line++
		trimmed := strings.TrimSpace(content)
		switch {
		case open == nil && strings.HasPrefix(trimmed, fence):
			indent = strings.Index(content, fence)
			open = &block{page: page, line: line, language: strings.TrimPrefix(trimmed, fence)}
		case open != nil && trimmed == fence:
			result = append(result, *open)
			open = nil
		case open != nil:
			open.text += content[min(indent, len(content)-len(strings.TrimLeft(content, " "))):]
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s: the block is never closed", open)
	}
	return result, nil
}

// objects returns the objects in a block of YAML.
func objects(t *testing.T, b block) []*unstructured.Unstructured {
	t.Helper()
	result, err := render.Decode([]byte(b.text))
	require.NoError(t, err, b)
	require.NotEmpty(t, result, "%s: no object", b)
	return result
}

// files returns all files in manifests that end in .yaml.
func files(t *testing.T) []block {
	t.Helper()
	var result []block
	for _, file := range below("manifests", ".yaml") {
		content, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		result = append(result, block{page: file, language: "yaml", text: string(content)})
	}
	return result
}

// TestAPIServerTakesObjects makes an API server validate every object in the pages and in manifests. TestRestIsCheckedElsewhere
// checks all other blocks.
func TestAPIServerTakesObjects(t *testing.T) {
	cp := env.Start(t, controlplane.Options{
		SkipKwok: true, SkipControllerManager: true, FeatureGates: map[string]bool{"GenericWorkload": true, "TopologyAwareWorkloadScheduling": true},
		APIServerArgs: []string{"--runtime-config=scheduling.k8s.io/v1beta1=true"},
	})
	require.NoError(t, hub.Install(t.Context(), cp.RESTConfig()))
	for _, file := range []string{"test/manifests/testdata/cert-manager.yaml", "test/manifests/testdata/prometheus-operator.yaml", "manifests/scheduler/crds/celset.dev_deviceattributes.yaml"} {
		definitions, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		require.NoError(t, hub.InstallDefinitions(t.Context(), cp.RESTConfig(), definitions))
	}
	require.NoError(t, hub.InstallDefinitions(t.Context(), cp.RESTConfig(), clusterProfiles(t)))
	taken := 0
	for _, b := range append(blocks(t, "yaml"), files(t)...) {
		if _, ok := elsewhereOf(b); ok {
			continue
		}
		taken++
		t.Run(b.String(), func(t *testing.T) {
			for _, object := range objects(t, b) {
				createNamespace(t, cp, object.GetNamespace())
			}
			_, err := controlplane.Apply(t.Context(), cp.RESTConfig(), []byte(b.text), controlplane.ApplyOptions{DryRun: true})
			require.NoError(t, err, "what is no object of the API is to be listed in elsewhere_test.go")
		})
	}
	t.Logf("%d blocks and files", taken)
	t.Run("a wrong one", func(t *testing.T) {
		all := blocks(t, "yaml")
		first := slices.IndexFunc(all, func(b block) bool { return strings.Contains(b.text, "kind: Placement") })
		require.GreaterOrEqual(t, first, 0)
		wrong := strings.Replace(all[first].text, "spec:", "spec:\n  numberOfCluster: 1", 1)
		_, err := controlplane.Apply(t.Context(), cp.RESTConfig(), []byte(wrong), controlplane.ApplyOptions{DryRun: true})
		require.ErrorContains(t, err, "numberOfCluster", "else this test shows nothing")
	})
}

// createNamespace creates a namespace, unless it exists.
func createNamespace(t *testing.T, cp *env.Env, name string) {
	t.Helper()
	if name == "" {
		return
	}
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := cp.Client().CoreV1().Namespaces().Create(t.Context(), object, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
}

// TestPlacementsAreConfigured checks that every Placement in the pages is valid.
func TestPlacementsAreConfigured(t *testing.T) {
	scheduler, err := placement.NewScheduler(placement.Config{})
	require.NoError(t, err)
	seen := 0
	for _, b := range blocks(t, "yaml") {
		if _, ok := elsewhereOf(b); ok {
			continue
		}
		for _, object := range objects(t, b) {
			if object.GetKind() != "Placement" {
				continue
			}
			seen++
			typed := &clusterv1beta1.Placement{}
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed), b)
			require.True(t, placement.Responsible(typed, false), "%s: celset is not told to take it", b)
			result, err := scheduler.Schedule(t.Context(), typed, &placement.Snapshot{}, time.Now())
			require.NoError(t, err, b)
			require.Empty(t, result.Misconfigurations, b)
		}
	}
	require.Positive(t, seen)
}

// isAboutClusters reports whether an expression is about a cluster, not about devices.
func isAboutClusters(expression string) bool {
	return strings.Contains(expression, "managedCluster") || strings.Contains(expression, cluster.NowFunction+"()")
}

// TestExpressionsCompile compiles the CEL expressions in code blocks. Empty lines separate the expressions of a block. An
// expression is about devices unless it reads a cluster or the time.
func TestExpressionsCompile(t *testing.T) {
	clusters, err := cluster.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	devices, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	for _, b := range blocks(t, "cel") {
		for expression := range strings.SplitSeq(b.text, "\n\n") {
			if !isAboutClusters(expression) {
				_, err := devices.Compile(t.Context(), expression)
				require.NoError(t, err, b)
				continue
			}
			_, err := clusters.Compile(t.Context(), clusterv1beta1.ClusterSelector{
				CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: []string{expression}},
			}, nil)
			require.NoError(t, err, b)
		}
	}
}

// clusterProfiles returns the CustomResourceDefinition in the module of ClusterProfiles.
func clusterProfiles(t *testing.T) []byte {
	t.Helper()
	// Ask for a package, because the go command downloads a missing module only for a package, not for a module path.
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-find", "-f", "{{.Module.Dir}}", "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1").Output()
	require.NoError(t, err)
	definition, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "config", "crd", "bases", "multicluster.x-k8s.io_clusterprofiles.yaml"))
	require.NoError(t, err)
	return definition
}

// TestIndexHasEveryPage checks that docs/README.md links to every page.
func TestIndexHasEveryPage(t *testing.T) {
	index := filepath.Join("docs", "README.md")
	content, err := os.ReadFile(filepath.Join("..", "..", index))
	require.NoError(t, err)
	for _, page := range pages {
		if page == index || page == "README.md" {
			continue
		}
		relative, err := filepath.Rel("docs", page)
		require.NoError(t, err)
		require.Contains(t, string(content), "]("+filepath.ToSlash(relative)+")", "%s has no link to %s", index, page)
	}
}
