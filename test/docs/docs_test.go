// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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
	"k8s.io/apimachinery/pkg/util/yaml"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/hub"
	"github.com/celset/celset/placement"
)

// pages are README.md and all pages in docs, by their path in the repository.
func pages(t *testing.T) []string {
	t.Helper()
	result := []string{"README.md"}
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		relative, err := filepath.Rel(root, path)
		result = append(result, relative)
		return err
	}))
	return result
}

// whole are the pages, and folders, in which every block of YAML is made of whole
// objects. Elsewhere a block without apiVersion and kind is part of one.
var whole = []string{"README.md", "docs/placement.md", "docs/ocm.md", "docs/hardware/", "docs/getting-started.md"}

// otherServers are the API groups of objects that are for programs, or for extensions
// that a cluster need not have, and not for the API server of the test.
var otherServers = []string{
	"kubescheduler.config.k8s.io", "config.celset.dev", "celset.dev", "kind.x-k8s.io", "kustomize.config.k8s.io",
	"cert-manager.io", "monitoring.coreos.com",
}

// block is what stands between two fences.
type block struct {
	page     string
	line     int
	language string
	text     string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// blocks returns those of all pages in one language.
func blocks(t *testing.T, language string) []block {
	t.Helper()
	var result []block
	for _, page := range pages(t) {
		content, err := os.ReadFile(filepath.Join("..", "..", page))
		require.NoError(t, err)
		found, err := parse(page, string(content))
		require.NoError(t, err)
		result = append(result, found...)
	}
	result = slices.DeleteFunc(result, func(b block) bool { return b.language != language })
	require.NotEmpty(t, result, "no %s in the documentation", language)
	return result
}

// parse finds the fenced blocks of a page. Those in lists are indented.
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

// objects are those in a block of YAML.
func objects(t *testing.T, b block) []*unstructured.Unstructured {
	t.Helper()
	var result []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(b.text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			require.NotEmpty(t, result, "no object")
			return result
		}
		require.NoError(t, err)
		result = append(result, object)
	}
}

// served are the objects of a block that are for an API server: all, none or, in a page
// that may have parts of objects, none for a part.
func served(t *testing.T, b block) []*unstructured.Unstructured {
	t.Helper()
	all := objects(t, b)
	isWhole := slices.ContainsFunc(whole, func(prefix string) bool { return strings.HasPrefix(b.page, prefix) })
	return slices.DeleteFunc(all, func(object *unstructured.Unstructured) bool {
		if object.GetAPIVersion() == "" && object.GetKind() == "" {
			require.False(t, isWhole, "%s: an object without apiVersion and kind", b)
			return true
		}
		return slices.Contains(otherServers, object.GroupVersionKind().Group)
	})
}

// TestAPIServerTakesObjects has an API server validate every object in the pages.
func TestAPIServerTakesObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server")
	}
	cp, err := controlplane.Start(t.Context(), controlplane.Options{
		DataDir: t.TempDir(), Progress: t.Output(), SkipKwok: true, SkipControllerManager: true,
		// Whoever names the directory of the binaries has built them.
		Prebuilt: os.Getenv(controlplane.BinDirEnv) != "",
	})
	require.NoError(t, err)
	defer cp.Stop()
	require.NoError(t, hub.Install(t.Context(), cp.RESTConfig()))
	for _, b := range blocks(t, "yaml") {
		t.Run(b.String(), func(t *testing.T) {
			all := served(t, b)
			if len(all) == 0 {
				t.Skip("nothing for an API server")
			}
			require.Len(t, all, len(objects(t, b)), "objects for different servers in a block")
			for _, object := range all {
				createNamespace(t, cp, object.GetNamespace())
			}
			_, err := controlplane.Apply(t.Context(), cp.RESTConfig(), []byte(b.text), controlplane.ApplyOptions{DryRun: true})
			require.NoError(t, err)
		})
	}
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
func createNamespace(t *testing.T, cp *controlplane.ControlPlane, name string) {
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

// TestPlacementsAreConfigured has every Placement in the pages understood.
func TestPlacementsAreConfigured(t *testing.T) {
	scheduler, err := placement.NewScheduler(placement.Config{})
	require.NoError(t, err)
	seen := 0
	for _, b := range blocks(t, "yaml") {
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

// TestExpressionsCompile compiles every expression that stands alone. An empty line
// is between two of them.
func TestExpressionsCompile(t *testing.T) {
	environment, err := cluster.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	devices, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	for _, b := range blocks(t, "cel") {
		for expression := range strings.SplitSeq(b.text, "\n\n") {
			if strings.Contains(expression, "devices") {
				_, err := devices.Compile(expression)
				require.NoError(t, err, b)
				continue
			}
			_, err := environment.Compile(clusterv1beta1.ClusterSelector{
				CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: []string{expression}},
			}, nil)
			require.NoError(t, err, b)
		}
	}
}

// announced are pages that are linked to before they are there.
var announced = []string{
	"docs/kubectl.md", "docs/install.md", "docs/two-schedulers.md",
}

// TestLinksLeadSomewhere follows the links between the pages.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		content, err := os.ReadFile(filepath.Join("..", "..", page))
		require.NoError(t, err)
		for i, part := range strings.Split(string(content), "](") {
			target, _, closed := strings.Cut(part, ")")
			if i == 0 || !closed || strings.Contains(target, "://") {
				continue
			}
			file, anchor, _ := strings.Cut(target, "#")
			path := filepath.Join("..", "..", filepath.Dir(page), file)
			if file == "" {
				path = filepath.Join("..", "..", page)
			}
			linked, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) && slices.Contains(announced, filepath.Join(filepath.Dir(page), file)) {
				continue
			}
			if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
				continue
			}
			require.NoError(t, err, "%s links to %s", page, target)
			require.Contains(t, anchors(string(linked)), anchor, "%s links to %s", page, target)
		}
	}
}

// punctuation is left out of anchors.
var punctuation = regexp.MustCompile(`[^\pL\pN _-]`)

// anchors are those of the headings of a page, and "" for the page.
func anchors(text string) []string {
	result := []string{""}
	for line := range strings.Lines(text) {
		if heading := strings.TrimLeft(line, "#"); heading != line {
			text := punctuation.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			result = append(result, strings.ReplaceAll(text, " ", "-"))
		}
	}
	return result
}

func TestParse(t *testing.T) {
	found, err := parse("page", "a\n```yaml\nb: 1\n```\n1. c\n\n   ```\n   d\n     e\n\n   ```\n")
	require.NoError(t, err)
	require.Equal(t, []block{
		{page: "page", line: 2, language: "yaml", text: "b: 1\n"},
		{page: "page", line: 7, text: "d\n  e\n\n"},
	}, found)
	_, err = parse("page", "```yaml\nb: 1\n")
	require.ErrorContains(t, err, "page:1: the block is never closed")
}
