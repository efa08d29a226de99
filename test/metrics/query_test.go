// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/metrics/legacyregistry"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
)

// knownMetrics returns the metrics of all components, and kube-scheduler's own metrics. For kube-scheduler's metrics, not all
// label values are known.
func knownMetrics(t *testing.T) map[string]metric {
	t.Helper()
	known := map[string]metric{}
	for component := range components {
		for name, m := range registered(t, component) {
			known[name] = m
		}
	}
	schedulermetrics.Register()
	schedulermetrics.ActivePods().Set(1)
	schedulermetrics.PodScheduled("profile", 1)
	schedulermetrics.PluginExecutionDuration.WithLabelValues("plugin", "point", "status").Observe(1)
	schedulermetrics.UnschedulableReason("plugin", "profile").Set(1)
	schedulermetrics.PluginEvaluationTotal.WithLabelValues("plugin", "point", "profile").Inc()
	utilfeature.DefaultMutableFeatureGate.AddMetrics()
	families, err := legacyregistry.DefaultGatherer.Gather()
	require.NoError(t, err)
	for _, family := range families {
		m := metric{kind: strings.ToLower(family.GetType().String()), labels: map[string][]string{}}
		for _, label := range family.GetMetric()[0].GetLabel() {
			m.labels[label.GetName()] = nil
		}
		known[family.GetName()] = m
	}
	return known
}

var (
	quoted     = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	grouping   = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	rangeOf    = regexp.MustCompile(`\[[^\]]*\]`)
	selectors  = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)?\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`([a-zA-Z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	identifier = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	operators  = []string{"and", "or", "unless", "bool", "offset", "group_left", "group_right", "by", "without", "on", "ignoring"}
)

// added are the labels that Prometheus adds to metrics.
var added = []string{"instance", "job", "le"}

// checkQuery fails the test if the query uses a metric, a label or a label value that does not exist. It returns the names of
// the metrics in the query.
func checkQuery(t *testing.T, known map[string]metric, query string) []string {
	t.Helper()
	for _, pair := range []string{"()", "{}", "[]"} {
		require.Equal(t, strings.Count(query, pair[:1]), strings.Count(query, pair[1:]), "brackets %s of %s", pair, query)
	}
	var names []string
	var labels []string
	for _, name := range namesIn(query) {
		base, m := find(known, name)
		require.NotNil(t, m, "there is no metric %s, in %s", name, query)
		names = append(names, base)
		for label := range m.labels {
			labels = append(labels, label)
		}
	}
	require.NotEmpty(t, names, "a query without metric: %s", query)
	for _, selector := range selectors.FindAllStringSubmatch(query, -1) {
		_, m := find(known, selector[1])
		require.NotNil(t, m, "a selector without metric in %s", query)
		checkMatchers(t, m, selector[2], query)
	}
	for _, group := range grouping.FindAllStringSubmatch(query, -1) {
		for _, label := range identifier.FindAllString(group[1], -1) {
			require.Contains(t, append(labels, added...), label, "group in %s", query)
		}
	}
	return names
}

func checkMatchers(t *testing.T, m *metric, matchers, query string) {
	t.Helper()
	for _, match := range matcher.FindAllStringSubmatch(matchers, -1) {
		label, values := match[1], strings.Split(match[3], "|")
		if slices.Contains(added, label) {
			continue
		}
		require.Contains(t, m.labels, label, "label in %s", query)
		for _, value := range values {
			if all := m.labels[label]; all != nil {
				require.Contains(t, all, value, "value of label %s in %s", label, query)
			}
		}
	}
}

// namesIn returns the names of the metrics in a query. It removes functions, labels and keywords, and returns the remaining
// names.
func namesIn(query string) []string {
	rest := quoted.ReplaceAllString(query, `""`)
	rest = rangeOf.ReplaceAllString(rest, "")
	rest = grouping.ReplaceAllString(rest, "")
	rest = selectors.ReplaceAllString(rest, "$1 ")
	var names []string
	for _, span := range identifier.FindAllStringIndex(rest, -1) {
		name := rest[span[0]:span[1]]
		isNumber := span[0] > 0 && rest[span[0]-1] >= '0' && rest[span[0]-1] <= '9'
		isFunction := strings.HasPrefix(strings.TrimSpace(rest[span[1]:]), "(")
		isAggregation := name == "sum" || name == "max" || name == "min" || name == "count"
		if !isNumber && !isFunction && !isAggregation && !slices.Contains(operators, name) {
			names = append(names, name)
		}
	}
	return names
}

// find returns the metric to which a name in a query refers, and the metric's full name. A histogram has three names, with
// different suffixes.
func find(known map[string]metric, name string) (string, *metric) {
	if m, ok := known[name]; ok && m.kind != "histogram" {
		return name, &m
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		base, ok := strings.CutSuffix(name, suffix)
		if m, isKnown := known[base]; ok && isKnown && m.kind == "histogram" {
			return base, &m
		}
	}
	return "", nil
}

func TestNamesInQueries(t *testing.T) {
	for query, want := range map[string][]string{
		`sum by (le) (rate(a_bucket{x="b_total", y=~"c|d"}[5m])) > 1e6`:                        {"a_bucket"},
		`max(a) / ignoring (x) group_left sum(b{x="}"}) and on (y) c offset 5m`:                {"a", "b", "c"},
		`histogram_quantile(0.99, sum by (le, x) (rate(d_bucket[$__rate_interval]))) > 300000`: {"d_bucket"},
		`label_values(e_total, instance)`:                                                      {"e_total", "instance"},
		`1 - a{} == 0`:                                                                         {"a"},
	} {
		require.Equal(t, want, namesIn(query), query)
	}
}
