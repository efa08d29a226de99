// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/controlplane"
)

// buildPromtool builds bin/promtool at its first call. The tests may run in a make; its variables are removed from the
// environment.
var buildPromtool = sync.OnceValues(func() (string, error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return "", err
	}
	command := exec.Command("make", "-s", "bin/promtool")
	command.Dir = root
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "MAKE") || strings.HasPrefix(variable, "MFLAGS=")
	})
	output, err := command.CombinedOutput()
	return string(output), err
})

// promtool runs Prometheus' promtool in a folder and returns its output.
func promtool(t *testing.T, folder string, args ...string) (string, error) {
	t.Helper()
	cases.OnlyNightly(t, "builds promtool, which takes minutes")
	output, err := buildPromtool()
	require.NoError(t, err, output)
	root, err := controlplane.ModuleRoot()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "promtool"), args...)
	command.Dir = folder
	result, err := command.CombinedOutput()
	return string(result), err
}

// testsOf returns promtool's unit tests for the rules in a folder of manifests/monitoring.
func testsOf(t *testing.T, folder string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", folder+".yaml"))
	require.NoError(t, err, "the alerts of %s have no tests", folder)
	return content
}

// write writes rules and their unit tests into a new folder for promtool, and returns the folder.
func write(t *testing.T, rules ruleFile, tests []byte) string {
	t.Helper()
	content, err := yaml.Marshal(rules)
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "rules.yaml"), content, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "tests.yaml"), tests, 0o600))
	return folder
}

// TestPrometheusTakesAlerts makes promtool parse the rules and run their unit tests.
func TestPrometheusTakesAlerts(t *testing.T) {
	for name, file := range rules(t) {
		t.Run(name, func(t *testing.T) {
			folder := write(t, file, testsOf(t, name))
			output, err := promtool(t, folder, "check", "rules", "--lint-fatal", "rules.yaml")
			require.NoError(t, err, output)
			output, err = promtool(t, folder, "test", "rules", "tests.yaml")
			require.NoError(t, err, output)
		})
	}
}

// TestPromtoolNoticesMistakes checks that promtool finds mistakes in rules. Otherwise TestPrometheusTakesAlerts would prove
// nothing.
func TestPromtoolNoticesMistakes(t *testing.T) {
	for name, change := range map[string]struct {
		change func(*alert)
		args   []string
		err    string
	}{
		"syntax":    {func(a *alert) { a.Expr = "sum(" }, []string{"check", "rules", "rules.yaml"}, "could not parse expression"},
		"template":  {func(a *alert) { a.Annotations["description"] = "{{ $valu }}" }, []string{"check", "rules", "rules.yaml"}, "undefined variable"},
		"threshold": {func(a *alert) { a.Expr = `absent(up{job="celset-webhook"} == 2)` }, []string{"test", "rules", "tests.yaml"}, "FAILED"},
		"time":      {func(a *alert) { a.For = "30m" }, []string{"test", "rules", "tests.yaml"}, "FAILED"},
	} {
		t.Run(name, func(t *testing.T) {
			file := rules(t)["webhook"]
			change.change(&file.Groups[0].Rules[0])
			output, err := promtool(t, write(t, file, testsOf(t, "webhook")), change.args...)
			require.Error(t, err)
			require.Contains(t, output, change.err)
		})
	}
}

// TestAlertsAreTested checks that each alert fires in one unit test and does not fire in another.
func TestAlertsAreTested(t *testing.T) {
	fires, quiet := map[string]bool{}, map[string]bool{}
	for folder := range rules(t) {
		var file struct {
			Tests []struct {
				Asked []struct {
					Expr    string           `json:"expr"`
					Samples []map[string]any `json:"exp_samples"`
				} `json:"promql_expr_test"`
			} `json:"tests"`
		}
		require.NoError(t, yaml.Unmarshal(testsOf(t, folder), &file))
		for _, test := range file.Tests {
			for _, asked := range test.Asked {
				name := matcher.FindStringSubmatch(asked.Expr)
				require.NotNil(t, name, asked.Expr)
				if len(asked.Samples) > 0 {
					fires[name[3]] = true
				} else {
					quiet[name[3]] = true
				}
			}
		}
	}
	all := slices.Collect(maps.Keys(alerts(t)))
	require.ElementsMatch(t, all, slices.Collect(maps.Keys(fires)))
	require.ElementsMatch(t, all, slices.Collect(maps.Keys(quiet)))
}

// alert is an alerting rule of Prometheus.
type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// A ruleGroup contains the rules of one program.
type ruleGroup struct {
	Name  string  `json:"name"`
	Rules []alert `json:"rules"`
}

// A ruleFile is the content of a Prometheus rule file. The spec of a PrometheusRule has the same form.
type ruleFile struct {
	Groups []ruleGroup `json:"groups"`
}

// rules returns the rules in each folder of manifests/monitoring.
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

// alerts returns all alerts by name.
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

// TestQueriesOfAlerts checks that alerts query only existing metrics.
func TestQueriesOfAlerts(t *testing.T) {
	known := knownMetrics(t)
	// Prometheus itself adds the metric "up" for each target.
	known["up"] = metric{kind: "gauge", labels: map[string][]string{}}
	for _, alert := range alerts(t) {
		checkQuery(t, known, alert.Expr)
	}
}

// severities are the severities of alerts that the page explains.
var severities = []string{"critical", "warning", "info"}

const pageOfAlerts = "https://github.com/celset/celset/blob/main/docs/alerts.md#"

// valueOfLabel matches the value of a label in the text of an alert.
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
