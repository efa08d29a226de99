// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/component-base/metrics/testutil"
	kubefeatures "k8s.io/kubernetes/pkg/features"

	"github.com/celset/celset/plugin"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

// measuredProfile is the only profile of a scheduler for this test. Other tests don't change its metrics, except for metrics
// about all claims of the cluster.
const measuredProfile = "celset-measured"

func TestMetricsOfTheScheduler(t *testing.T) {
	minor.Needs(t, kubefeatures.DRAConsumableCapacity)
	t.Parallel()
	l := newLab(t, "metrics", 2)
	// On each node, ten devices stay free, because the pods that wait need more. They form C(10,3) = 120 sets of three.
	driver := l.Ring(t, 16).Drivers()[0]
	mla := env.Request("mla", driver, 3)
	// The scheduler counts sets for classes that define a constraint. Only these metrics contain names of objects.
	l.CreateNamedClass(t, measuredProfile, driver, env.Definition("block", env.Contiguous(driver, 4)))
	scheduler := startScheduler(t, measuredProfile, celsetConfig(t, measuredProfile, "{allocator: All, budget: {cost: 3000}, fragmentationInterval: 1s}"))

	l.Run(t, "fits", measuredProfile, mla, env.Constrained("ring3", env.Contiguous(driver, 3)))
	l.Run(t, "plain", measuredProfile, env.Request("mla", driver, 1))
	l.Run(t, "same", measuredProfile, env.Request("mla", driver, 2), env.DistinctAttribute(driver+"/index"))
	l.RequireRunning(t, "fits", "plain", "same")
	l.Run(t, "large", measuredProfile, mla, env.Constrained("large", "size(devices) > 3"))
	l.RequireRefused(t, "large", "no set of 3 free devices satisfies constraint large")
	// The second claim with the same definition uses the cached result of the compilation.
	l.Run(t, "as-large", measuredProfile, mla, env.Constrained("large", "size(devices) > 3"))
	l.RequireRefused(t, "as-large", "no set of 3 free devices satisfies constraint large")
	l.Run(t, "long", measuredProfile, mla, env.Constrained("long", "devices.slice(0, 1).map(d, d.attributes['"+driver+"'].index).size() == 2"))
	l.RequireRefused(t, "long", "exceed the cost budget of 1500 CEL cost units")
	l.Run(t, "wrong", measuredProfile, mla, env.Constrained("wrong", "devices.slice(0, 1).all(d, d.attributes['"+driver+"'].missing == 1)"))
	l.RequireRefused(t, "wrong", "no such key: missing")
	l.Run(t, "undefined", measuredProfile, mla, env.Refer("undefined"))
	l.RequireRefused(t, "undefined", "celset.dev/undefined")

	env.Eventually(t, "sets of devices are counted", func(context.Context) (string, error) {
		if _, values := scrape(t, scheduler); values["celset_scheduler_device_sets_last_count_timestamp_seconds"] == 0 {
			return "there is no time", nil
		}
		return "", nil
	})
	requireUnschedulable(t, scheduler, measuredProfile)
	least := map[string]float64{
		"celset_scheduler_allocation_duration_seconds cel allocated":            1,
		"celset_scheduler_allocation_duration_seconds none allocated":           1,
		"celset_scheduler_allocation_duration_seconds attribute allocated":      1,
		"celset_scheduler_allocation_duration_seconds cel no_fit":               2,
		"celset_scheduler_allocation_duration_seconds cel budget":               1,
		"celset_scheduler_allocation_duration_seconds cel error":                1,
		"celset_scheduler_allocation_steps cel allocated":                       1,
		"celset_scheduler_allocation_cost budget":                               1,
		"celset_scheduler_cel_expression_constraint_cost":                       3,
		"celset_scheduler_constraint_evaluations_total set":                     3,
		"celset_scheduler_constraint_evaluations_total part":                    16,
		"celset_scheduler_constraint_evaluation_failures_total Runtime":         1,
		"celset_scheduler_constraint_compilations_total compiled":               4,
		"celset_scheduler_cache_requests_total answers hit":                     1,
		"celset_scheduler_search_cuts_total":                                    1,
		"celset_scheduler_budget_exhaustions_total cost":                        1,
		"celset_scheduler_refused_scheduling_attempts_total invalid_constraint": 1,
		"celset_scheduler_claims cel allocated":                                 1,
		"celset_scheduler_claims cel pending":                                   5,
		"celset_scheduler_claims none allocated":                                1,
		"celset_scheduler_claims attribute allocated":                           1,
	}
	var scraped map[string]string
	var values map[string]float64
	// Some metrics change only when the scheduler tries the pods again, so wait.
	env.Eventually(t, "all is counted", func(context.Context) (string, error) {
		scraped, values = scrape(t, scheduler)
		var fewer []string
		for name, least := range least {
			if values[name] < least {
				fewer = append(fewer, fmt.Sprintf("%s is %v", name, values[name]))
			}
		}
		return strings.Join(fewer, ", "), nil
	})
	require.Zero(t, values["celset_scheduler_refused_scheduling_attempts_total gate_disabled"])
	require.Zero(t, values["celset_scheduler_budget_exhaustions_total steps"])

	// The cluster has neither a PodGroup nor DeviceAttributes, so these metrics have no samples.
	for _, name := range []string{"node_set_duration_seconds", "device_attributes", "device_attributes_objects", "device_attributes_problems"} {
		scraped["celset_scheduler_"+name] = ""
	}
	require.ElementsMatch(t, metricsOfThePage(t), slices.Collect(maps.Keys(scraped)))
	for name, text := range scraped {
		require.NotContains(t, text, l.Namespace, "%s has the name of an object", name)
	}
}

// requireUnschedulable waits until kube-scheduler's own metric counts a pod of the profile as rejected by our plugin. The
// metric does not count a pod while the scheduler tries it.
func requireUnschedulable(t *testing.T, scheduler *controlplane.Process, profile string) {
	t.Helper()
	line := `scheduler_unschedulable_pods{plugin="` + plugin.Name + `",profile="` + profile + `"} `
	env.Eventually(t, "refused pods are counted", func(ctx context.Context) (string, error) {
		content, err := scheduler.Get(ctx, "/metrics")
		if err != nil {
			return "", err
		}
		_, value, found := strings.Cut(string(content), line)
		if !found || strings.HasPrefix(value, "0\n") {
			return "there are none at " + line, nil
		}
		return "", nil
	})
}

// scrape reads /metrics as Prometheus would. texts maps the name of each of our metrics to its lines. values maps metric name
// and label values to the value; for a histogram, it is the count.
func scrape(t *testing.T, scheduler *controlplane.Process) (texts map[string]string, values map[string]float64) {
	t.Helper()
	content, err := scheduler.Get(t.Context(), "/metrics")
	require.NoError(t, err)
	families, err := testutil.TextToMetricFamilies(bytes.NewReader(content))
	require.NoError(t, err)
	texts, values = map[string]string{}, map[string]float64{}
	for name, family := range families {
		if !strings.HasPrefix(name, "celset_") {
			continue
		}
		texts[name] = family.String()
		for _, metric := range family.GetMetric() {
			key := name
			for _, label := range metric.GetLabel() {
				key += " " + label.GetValue()
			}
			values[key] = float64(metric.GetHistogram().GetSampleCount()) + metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return texts, values
}

var metricHeading = regexp.MustCompile("(?m)^### `(celset_[a-z_]+)`$")

// metricsOfThePage returns the names of the scheduler's metrics in docs/METRICS.md.
func metricsOfThePage(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile(env.Manifest(t, "..", "docs", "METRICS.md"))
	require.NoError(t, err)
	var names []string
	for _, program := range []string{"All programs", "celset-scheduler"} {
		_, ours, found := strings.Cut(string(content), "\n## "+program+"\n")
		require.True(t, found)
		ours, _, _ = strings.Cut(ours, "\n## ")
		for _, heading := range metricHeading.FindAllStringSubmatch(ours, -1) {
			names = append(names, heading[1])
		}
	}
	return names
}
