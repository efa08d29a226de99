// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// A definition is a CustomResourceDefinition, decoded from JSON.
type definition = map[string]any

// root is the root of the repository.
var root = filepath.Join("..", "..", "..")

// placements and profiles are patterns for the files with the CRDs of two API groups.
var (
	placements = filepath.Join(root, "manifests", "placement", "crds", "cluster.*.yaml")
	profiles   = filepath.Join(root, "manifests", "placement", "profile-crds", "multicluster.*.yaml")
)

// read returns the CRDs in the files that match the pattern, by name.
func read(t *testing.T, pattern string) map[string]definition {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	result := map[string]definition{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		var object definition
		require.NoError(t, yaml.Unmarshal(content, &object))
		require.Equal(t, "CustomResourceDefinition", object["kind"], file)
		name, _, err := unstructured.NestedString(object, "metadata", "name")
		require.NoError(t, err)
		require.NotContains(t, result, name)
		result[name] = object
	}
	return result
}

func names(of map[string]definition) []string {
	var result []string
	for name := range of {
		kind, _, _ := strings.Cut(name, ".")
		result = append(result, kind)
	}
	slices.Sort(result)
	return result
}

// output runs a command in the root of the repository and returns its output. The tests may run in a make; its variables are
// removed from the environment.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir, command.Stderr = root, t.Output()
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "MAKE") || strings.HasPrefix(variable, "MFLAGS=")
	})
	result, err := command.Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(result))
}

func TestTheyAreWhatIsGenerated(t *testing.T) {
	ofPlacements, ofProfiles, ofSchedulers, deepCopy, schemas := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	output(t, "make", "-s", "generate", "PLACEMENT_CRDS="+ofPlacements, "PROFILE_CRDS="+ofProfiles, "SCHEDULER_CRDS="+ofSchedulers,
		"DEEPCOPY="+deepCopy, "SCHEMAS="+schemas)
	requireSame(t, ofSchedulers, filepath.Join(root, "manifests", "scheduler", "crds", "celset.*.yaml"), 1)
	requireSame(t, deepCopy, filepath.Join(root, "apis", "celset", "v1alpha1", "zz_generated.deepcopy.go"), 1)
	requireSame(t, ofPlacements, placements, 6)
	requireSame(t, ofProfiles, profiles, 2)
	requireSame(t, schemas, filepath.Join(root, "schemas", "*.schema.json"), 7)
}

func requireSame(t *testing.T, dir, pattern string, count int) {
	t.Helper()
	generated, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	stored, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.Len(t, stored, count)
	require.Len(t, generated, count, "run make generate")
	for i, file := range stored {
		require.Equal(t, filepath.Base(file), filepath.Base(generated[i]))
		want, err := os.ReadFile(generated[i])
		require.NoError(t, err)
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(string(want), string(got)), "%s: run make generate", file)
	}
}

// TestSameAsTheModules compares our CRDs with the CRDs in the modules of the APIs.
func TestSameAsTheModules(t *testing.T) {
	dir := output(t, "go", "list", "-m", "-f", "{{.Dir}}", "open-cluster-management.io/api")
	inventory := output(t, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-inventory-api")
	ours, theirs := read(t, placements), read(t, filepath.Join(dir, "cluster", "v1*", "*.crd.yaml"))
	for name, definition := range read(t, profiles) {
		want := read(t, filepath.Join(inventory, "config", "crd", "bases", "*.yaml"))[name]
		require.NotNil(t, want, name)
		require.Empty(t, cmp.Diff(want["spec"], definition["spec"]), name)
	}
	require.Equal(t, []string{
		"addonplacementscores", "managedclusters", "managedclustersetbindings", "managedclustersets", "placementdecisions", "placements",
	}, names(ours))
	for name, got := range ours {
		t.Run(name, func(t *testing.T) {
			want := theirs[name]
			require.NotNil(t, want)
			// Remove the known differences: fields that are false by default, and fields that the API server writes.
			preserve, _, err := unstructured.NestedBool(want, "spec", "preserveUnknownFields")
			require.NoError(t, err)
			require.False(t, preserve)
			unstructured.RemoveNestedField(want, "spec", "preserveUnknownFields")
			unstructured.RemoveNestedField(want, "status")
			unstructured.RemoveNestedField(got, "metadata", "annotations", "controller-gen.kubebuilder.io/version")
			require.Empty(t, got["metadata"].(definition)["annotations"])
			unstructured.RemoveNestedField(got, "metadata", "annotations")
			require.Empty(t, cmp.Diff(want, got))
		})
	}
}
