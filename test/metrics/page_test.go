// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/celset/celset/test/controlplane"
)

// maxSeries is the maximum number of time series that docs/METRICS.md states.
const maxSeries = 900

func file(t *testing.T, elements ...string) string {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	require.NoError(t, err)
	content, err := os.ReadFile(filepath.Join(append([]string{root}, elements...)...))
	require.NoError(t, err)
	return string(content)
}

func page(t *testing.T) string { return file(t, "docs", "METRICS.md") }

var (
	metricHeading = regexp.MustCompile("^### `([a-z_]+)`$")
	labelOnPage   = regexp.MustCompile("`([a-z_]+)` \\(([^)]*)\\)")
	code          = regexp.MustCompile("`([^`]+)`")
)

// described returns the metrics in docs/METRICS.md, by program and name.
func described(t *testing.T) map[string]map[string]metric {
	t.Helper()
	result := map[string]map[string]metric{}
	component, name := "", ""
	for _, line := range strings.Split(page(t), "\n") {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			component, name = heading, ""
			continue
		}
		if heading := metricHeading.FindStringSubmatch(line); heading != nil {
			name = heading[1]
			if result[component] == nil {
				result[component] = map[string]metric{}
			}
			require.NotContains(t, result[component], name)
			result[component][name] = metric{labels: map[string][]string{}}
			continue
		}
		if name != "" {
			m := result[component][name]
			m.read(t, line)
			result[component][name] = m
		}
	}
	return result
}

// read parses a line of a metric's description on the page.
func (m *metric) read(t *testing.T, line string) {
	t.Helper()
	if help, ok := strings.CutPrefix(line, "- Help: "); ok {
		m.help = help
	}
	parts, ok := strings.CutPrefix(line, "- Type: ")
	if !ok {
		return
	}
	for i, part := range strings.Split(parts, "; ") {
		if i == 0 {
			m.kind = part
		} else if labels, ok := strings.CutPrefix(part, "labels "); ok {
			for _, label := range labelOnPage.FindAllStringSubmatch(labels, -1) {
				for _, value := range code.FindAllStringSubmatch(label[2], -1) {
					m.labels[label[1]] = append(m.labels[label[1]], value[1])
				}
			}
		} else if buckets, ok := strings.CutPrefix(part, "buckets "); ok {
			for _, bound := range strings.Split(buckets, ", ") {
				value, err := strconv.ParseFloat(bound, 64)
				require.NoError(t, err)
				m.buckets = append(m.buckets, value)
			}
		} else {
			require.Fail(t, "what is no label and no bucket", part)
		}
	}
}

func TestPageDescribesWhatIsRegistered(t *testing.T) {
	onPage := described(t)
	for component := range onPage {
		require.Contains(t, components, component, "the page describes metrics of a program without any")
	}
	for component := range components {
		want := registered(t, component)
		series := 0
		for name, m := range want {
			series += m.series
			m.series = 0
			want[name] = m
		}
		sorted := cmpopts.SortSlices(strings.Compare)
		require.Empty(t, cmp.Diff(want, onPage[component], cmp.AllowUnexported(metric{}), sorted, cmpopts.EquateApprox(1e-9, 0)),
			"docs/METRICS.md (+) does not say what %s registers (-)", component)
		require.Less(t, series, maxSeries, "time series of %s", component)
	}
}

// TestNoLabelNamesObjects checks that no label contains the name of an object, except for objects that only administrators
// create.
func TestNoLabelNamesObjects(t *testing.T) {
	allowed := []string{
		"budget", "cache", "class", "commit", "constraint", "devices", "driver", "end", "kubernetes", "operation", "result", "plugin_name", "plugin_type", "queue", "reason", "resource", "scope", "state", "version",
	}
	for component := range components {
		for name, m := range registered(t, component) {
			for label := range m.labels {
				require.True(t, slices.Contains(allowed, label), "label %s of %s: is it the name of an object?", label, name)
			}
		}
	}
}

// TestQueriesOfThePage checks that docs/METRICS.md has an example query for each metric, and that its queries use only existing
// metrics.
func TestQueriesOfThePage(t *testing.T) {
	known := knownMetrics(t)
	asked := map[string]bool{}
	for _, q := range queriesOf(page(t)) {
		for _, name := range checkQuery(t, known, q) {
			asked[name] = true
		}
	}
	for component := range components {
		for name := range registered(t, component) {
			require.True(t, asked[name], "docs/METRICS.md has no example query of %s", name)
		}
	}
}

// TestQueriesOfOtherPages checks that queries on other pages use only existing metrics.
func TestQueriesOfOtherPages(t *testing.T) {
	queries := queriesOf(file(t, "docs", "install.md"))
	require.NotEmpty(t, queries)
	known := knownMetrics(t)
	for _, q := range queries {
		checkQuery(t, known, q)
	}
}

var (
	queryLine   = regexp.MustCompile("(?m)^- Query: `([^`]*)`")
	queryBlock  = regexp.MustCompile("(?s)```promql\n(.*?)\n *```")
	queryInCell = regexp.MustCompile("`([^`]*(?:rate|_over_time)\\([^`]*)`")
)

// queriesOf returns the PromQL queries on a page: in code blocks, in lines and in tables.
func queriesOf(content string) []string {
	var queries []string
	for _, line := range queryLine.FindAllStringSubmatch(content, -1) {
		queries = append(queries, line[1])
	}
	for _, block := range queryBlock.FindAllStringSubmatch(content, -1) {
		queries = append(queries, block[1])
	}
	for _, line := range strings.Split(content, "\n") {
		if strings.HasPrefix(line, "|") {
			for _, cell := range queryInCell.FindAllStringSubmatch(line, -1) {
				queries = append(queries, strings.ReplaceAll(cell[1], `\|`, "|"))
			}
		}
	}
	return queries
}
