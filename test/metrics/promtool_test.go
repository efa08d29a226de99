// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/cases"
)

// buildPromtool builds bin/promtool, once in a run. Of a make that runs the tests it does not
// know.
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

// promtool runs Prometheus' own tool in a folder and returns what it printed.
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

// testsOf are the unit tests of the rules in a folder of manifests/monitoring.
func testsOf(t *testing.T, folder string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", folder+".yaml"))
	require.NoError(t, err, "the alerts of %s have no tests", folder)
	return content
}

// write puts rules and their tests side by side, as promtool wants them.
func write(t *testing.T, rules ruleFile, tests []byte) string {
	t.Helper()
	content, err := yaml.Marshal(rules)
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "rules.yaml"), content, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "tests.yaml"), tests, 0o600))
	return folder
}

// TestPrometheusTakesAlerts has Prometheus parse expressions and templates, and run the tests.
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

// TestPromtoolNoticesMistakes shows that the test before can fail.
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

// TestAlertsAreTested: each alert fires in a test, and each is asked for when it must not.
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
