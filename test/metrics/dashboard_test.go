// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/test/controlplane"
)

// A dashboard has the fields of a Grafana dashboard that the tests use.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Templating    struct {
		List []struct {
			Name, Type string
			Definition string
		}
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ H, W, X, Y int }
	Datasource               struct{ Type, UID string }
	Targets                  []struct {
		RefID, Expr, LegendFormat string
		Datasource                struct{ Type, UID string }
	}
}

func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	require.NoError(t, err)
	paths, err := filepath.Glob(filepath.Join(root, "manifests", "dashboards", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	result := map[string]dashboard{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		var d dashboard
		require.NoError(t, json.Unmarshal(content, &d), path)
		result[filepath.Base(path)] = d
	}
	return result
}

var (
	labelValues = regexp.MustCompile(`^label_values\(([a-z_]+), ([a-z_]+)\)$`)
	legendLabel = regexp.MustCompile(`\{\{([a-z_]+)\}\}`)
)

// TestQueriesOfDashboards checks that dashboards query only existing metrics, and that each metric is on a dashboard.
func TestQueriesOfDashboards(t *testing.T) {
	known := knownMetrics(t)
	shown := map[string]bool{}
	for name, d := range dashboards(t) {
		for _, variable := range d.Templating.List {
			if variable.Type == "query" {
				parts := labelValues.FindStringSubmatch(variable.Definition)
				require.NotNil(t, parts, "%s: variable %s", name, variable.Name)
				_, m := find(known, parts[1])
				require.NotNil(t, m, "%s: there is no metric %s", name, parts[1])
			}
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				for _, metric := range checkQuery(t, known, target.Expr) {
					shown[metric] = true
				}
				for _, label := range legendLabel.FindAllStringSubmatch(target.LegendFormat, -1) {
					require.Contains(t, groups(target.Expr), label[1], "%s: legend of panel %q", name, p.Title)
				}
			}
		}
	}
	for component := range components {
		for name := range registered(t, component) {
			require.True(t, shown[name], "no dashboard shows %s", name)
		}
	}
}

// groups returns the labels that the result of a query has.
func groups(query string) []string {
	var labels []string
	for _, group := range grouping.FindAllStringSubmatch(query, -1) {
		labels = append(labels, identifier.FindAllString(group[1], -1)...)
	}
	return labels
}

func TestPanels(t *testing.T) {
	for name, d := range dashboards(t) {
		require.Equal(t, strings.TrimSuffix(name, ".json"), d.UID)
		require.NotEmpty(t, d.Title)
		require.Positive(t, d.SchemaVersion)
		ids := map[int]bool{}
		taken := map[[2]int]string{}
		for _, p := range d.Panels {
			require.NotEmpty(t, p.Title)
			require.False(t, ids[p.ID], "%s: id of %q", name, p.Title)
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					require.Empty(t, taken[[2]int{x, y}], "%s: %q lies over another panel", name, p.Title)
					taken[[2]int{x, y}] = p.Title
				}
			}
			require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, "%s: %q", name, p.Title)
			if p.Type == "row" {
				continue
			}
			require.NotEmpty(t, p.Description, "%s: %q", name, p.Title)
			require.NotEmpty(t, p.Targets, "%s: %q", name, p.Title)
			require.Equal(t, "${datasource}", p.Datasource.UID, "%s: %q", name, p.Title)
			refs := map[string]bool{}
			for _, target := range p.Targets {
				require.False(t, refs[target.RefID], "%s: %q", name, p.Title)
				refs[target.RefID] = true
				require.Equal(t, "${datasource}", target.Datasource.UID, "%s: %q", name, p.Title)
			}
		}
	}
}
