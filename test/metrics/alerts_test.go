// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/controlplane"
)

// alert is a rule of Prometheus.
type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// ruleGroup is what a file of rules has one of for each program.
type ruleGroup struct {
	Name  string  `json:"name"`
	Rules []alert `json:"rules"`
}

// ruleFile is what Prometheus reads, and what the operator's PrometheusRule has as its spec.
type ruleFile struct {
	Groups []ruleGroup `json:"groups"`
}

// rules are those of each folder in manifests/monitoring.
func rules(t *testing.T) map[string]ruleFile {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	require.NoError(t, err)
	paths, err := filepath.Glob(filepath.Join(root, "manifests", "monitoring", "*", "rules.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	result := map[string]ruleFile{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		var object struct {
			APIVersion, Kind string
			Metadata         map[string]any
			Spec             ruleFile
		}
		require.NoError(t, yaml.UnmarshalStrict(content, &object), path)
		require.Equal(t, "PrometheusRule", object.Kind)
		result[filepath.Base(filepath.Dir(path))] = object.Spec
	}
	return result
}

// alerts are all of them, by their names.
func alerts(t *testing.T) map[string]alert {
	t.Helper()
	result := map[string]alert{}
	for folder, file := range rules(t) {
		for _, group := range file.Groups {
			for _, rule := range group.Rules {
				require.NotContains(t, result, rule.Alert, folder)
				result[rule.Alert] = rule
			}
		}
	}
	return result
}

// TestQueriesOfAlerts: what an alert asks for exists.
func TestQueriesOfAlerts(t *testing.T) {
	known := knownMetrics(t)
	// Prometheus has it for whatever it reads.
	known["up"] = metric{kind: "gauge", labels: map[string][]string{}}
	for _, alert := range alerts(t) {
		checkQuery(t, known, alert.Expr)
	}
}

// severities are explained on the page.
var severities = []string{"critical", "warning", "info"}

const pageOfAlerts = "https://github.com/celset/celset/blob/main/docs/alerts.md#"

// valueOfLabel finds the labels that a text shows.
var valueOfLabel = regexp.MustCompile(`\$labels\.([a-z_]+)`)

func TestAlertsSayWhatToDo(t *testing.T) {
	page := file(t, "docs", "alerts.md")
	described := map[string]bool{}
	for line := range strings.Lines(page) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "### "); ok {
			described[name] = true
		}
	}
	all := alerts(t)
	require.ElementsMatch(t, slices.Collect(maps.Keys(all)), slices.Collect(maps.Keys(described)), "docs/alerts.md has an entry for each alert")
	for name, alert := range all {
		require.Equal(t, []string{"severity"}, slices.Collect(maps.Keys(alert.Labels)), name)
		require.Contains(t, severities, alert.Labels["severity"], name)
		require.ElementsMatch(t, []string{"summary", "description", "runbook_url"}, slices.Collect(maps.Keys(alert.Annotations)), name)
		require.Equal(t, pageOfAlerts+strings.ToLower(name), alert.Annotations["runbook_url"])
		require.NotContains(t, alert.Annotations["summary"], "{{", "%s: the summary is the same for all", name)
		for _, label := range valueOfLabel.FindAllStringSubmatch(alert.Annotations["description"], -1) {
			if !slices.Contains(added, label[1]) {
				require.Contains(t, groups(alert.Expr), label[1], "label in the description of %s", name)
			}
		}
		_, entry, _ := strings.Cut(page, "\n### "+name+"\n")
		entry, _, _ = strings.Cut(entry, "\n#")
		require.Contains(t, entry, "*What to do:*", name)
	}
}
