// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"
)

// minorOfKubernetes returns the minor version of Kubernetes in the form of celset's versions, such as "v0.37".
func minorOfKubernetes(t *testing.T) string {
	t.Helper()
	for _, required := range readModule(t, "").Require {
		if required.Mod.Path == "k8s.io/kubernetes" {
			return "v0" + strings.TrimPrefix(semver.MajorMinor(required.Mod.Version), "v1")
		}
	}
	require.FailNow(t, "go.mod does not require k8s.io/kubernetes")
	return ""
}

// ofCelset matches a version of celset on a page: in URLs of releases, and of tags, the chart and Go modules.
var ofCelset = regexp.MustCompile(`(?:celset/celset/releases/download/|refs/tags/|git checkout |VERSION=|celset version |celset/celset/[\w/-]+@)(v\d[\w.-]*)|charts/celset --version (\d[\w.-]*)`)

// TestOneVersionScheme checks that the versions of all released parts contain the minor version of Kubernetes.
func TestOneVersionScheme(t *testing.T) {
	minor := minorOfKubernetes(t)
	var chart struct {
		Version string `json:"version"`
	}
	content, err := os.ReadFile(filepath.Join(root, "manifests", "charts", "celset", "Chart.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(content, &chart))
	require.Equal(t, minor, semver.MajorMinor("v"+chart.Version), "version in Chart.yaml")

	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	seen := 0
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		content, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, match := range ofCelset.FindAllStringSubmatch(string(content), -1) {
			seen++
			require.Equal(t, minor, semver.MajorMinor("v"+strings.TrimPrefix(match[1]+match[2], "v")), "%s: %s", page, match[0])
		}
	}
	require.GreaterOrEqual(t, seen, 5)

	library, err := os.ReadFile(filepath.Join(root, "hack", "library.sh"))
	require.NoError(t, err)
	for _, match := range regexp.MustCompile(`(?m)^1\.(\d+)\) kubernetes=(v[\w.-]+)`).FindAllStringSubmatch(string(library), -1) {
		require.Equal(t, "v0."+match[1], semver.MajorMinor(match[2]), match[0])
	}
}
