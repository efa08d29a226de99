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
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/test/controlplane"
)

// TestVersions generates the tables of docs/versions.md from go.mod, the feature gates and the recorded APIs.
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

// minorVersions returns the versions of Kubernetes that the scheduler can emulate, and its own version.
func minorVersions() []string {
	return append(slices.Clone(controlplane.OlderKubernetes), utilfeature.DefaultMutableFeatureGate.EmulationVersion().String())
}

// gatesByVersion returns a table with the state of DRA's feature gates in each version.
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

// gateIn returns the state of a feature gate in a version, in a cluster whose components may be one minor version older.
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

// served maps a minor version to the kinds, fields and functions that its API server reported. Package test/versions recorded
// them.
type served map[string]struct {
	Kinds, Fields, Functions []string
}

// servedBy reads the recorded API of the versions.
func servedBy(t *testing.T, minors []string) served {
	t.Helper()
	all := served{}
	for _, minor := range minors {
		content, err := os.ReadFile(filepath.Join("..", "versions", "testdata", minor+".yaml"))
		require.NoError(t, err)
		of := all[minor]
		require.NoError(t, yaml.UnmarshalStrict(content, &of))
		require.NotEmpty(t, of.Kinds)
		all[minor] = of
	}
	return all
}

// differences returns a table of the kinds, fields and functions that only some versions have.
func (s served) differences(minors []string) string {
	table := "| | " + strings.Join(minors, " | ") + " |\n|---" + strings.Repeat("|---", len(minors)) + "|\n"
	list := func(what string, of func(minor string) []string) {
		var all []string
		for _, minor := range minors {
			all = append(all, of(minor)...)
		}
		slices.Sort(all)
		for _, each := range slices.Compact(all) {
			row, everywhere := "| "+what+" "+each, true
			for _, minor := range minors {
				has := slices.Contains(of(minor), each)
				everywhere = everywhere && has
				row += map[bool]string{true: " | yes", false: " | –"}[has]
			}
			if !everywhere {
				table += row + " |\n"
			}
		}
	}
	list("kind", func(minor string) (kinds []string) {
		for _, kind := range s[minor].Kinds {
			kinds = append(kinds, "`"+kind+"`")
		}
		return kinds
	})
	list("field", func(minor string) (fields []string) {
		for _, field := range s[minor].Fields {
			// Leave out the fields of a new type. The table already has the field of that type.
			if kind, _, _ := strings.Cut(field, "."); s.everywhere(kind) {
				fields = append(fields, "`"+field+"`")
			}
		}
		return fields
	})
	list("CEL:", func(minor string) []string { return s[minor].Functions })
	return table
}

// everywhere reports whether all versions have the type.
func (s served) everywhere(kind string) bool {
	for _, of := range s {
		if !slices.ContainsFunc(of.Fields, func(field string) bool { return strings.HasPrefix(field, kind+".") }) {
			return false
		}
	}
	return true
}
