// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"

	"github.com/celset/celset/internal/controlplane"
)

// TestVersions writes the versions in go.mod into the page about them.
func TestVersions(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	require.NoError(t, err)
	table := "| | version |\n|---|---|\n"
	for _, of := range []struct{ what, module string }{
		{"Kubernetes", "k8s.io/kubernetes"},
		{"its libraries", "k8s.io/dynamic-resource-allocation"},
		{"CEL", "github.com/google/cel-go"},
		{"API of Open Cluster Management", "open-cluster-management.io/api"},
		{"controller-runtime", "sigs.k8s.io/controller-runtime"},
		{"Go, at least", "go"},
	} {
		found := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(of.module) + ` (\S+)$`).FindSubmatch(content)
		require.NotNil(t, found, of.module)
		table += fmt.Sprintf("| %s | %s |\n", of.what, strings.TrimPrefix(string(found[1]), "v"))
	}
	minors := minorVersions()
	checkGenerated(t, filepath.Join("docs", "versions.md"), map[string]string{
		"modules": table, "gates": gatesByVersion(minors), "served": servedBy(t, minors).differences(minors),
	})
}

// minorVersions are those that the scheduler emulates, and its own.
func minorVersions() []string {
	return append(slices.Clone(controlplane.OlderKubernetes), utilfeature.DefaultMutableFeatureGate.EmulationVersion().String())
}

// gatesByVersion is a table of the feature gates of DRA in each of the versions.
func gatesByVersion(minors []string) string {
	table := "| feature gate | " + strings.Join(minors, " | ") + " |\n|---" + strings.Repeat("|---", len(minors)) + "|\n"
	specs := utilfeature.DefaultMutableFeatureGate.GetAllVersioned()
	var gates []string
	for gate := range specs {
		if strings.HasPrefix(string(gate), "DRA") {
			gates = append(gates, string(gate))
		}
	}
	slices.Sort(gates)
	for _, gate := range gates {
		table += "| " + gate
		for _, minor := range minors {
			table += " | " + gateIn(specs[featuregate.Feature(gate)], version.MustParse(minor))
		}
		table += " |\n"
	}
	return table
}

// gateIn says what a gate is in a version whose components may be one minor version older.
func gateIn(specs featuregate.VersionedSpecs, of *version.Version) string {
	is := "–"
	for _, spec := range specs {
		if spec.Version.GreaterThan(of) || spec.MinCompatibilityVersion != nil && !spec.MinCompatibilityVersion.LessThan(of) {
			continue
		}
		switch {
		case spec.LockToDefault:
			is = "always"
		case spec.Default:
			is = "on"
		default:
			is = "off"
		}
	}
	return is
}
