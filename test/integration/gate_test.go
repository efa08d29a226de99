// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// gateOffProfile is the only profile of a scheduler whose feature gate DRACELDeviceConstraint is off.
const gateOffProfile = "celset-gate-off"

// celsetConfig returns the scheduler configuration in manifests with only our profile, under another name. args, if not empty,
// replaces the plugin's arguments. Leader election is off, because the scheduler that all tests share holds the lease.
func celsetConfig(t *testing.T, profile, args string) []byte {
	t.Helper()
	config, err := readSchedulerConfig(t)
	require.NoError(t, err)
	require.Equal(t, env.CelsetProfile, *config.Profiles[1].SchedulerName)
	config.Profiles = config.Profiles[1:]
	config.Profiles[0].SchedulerName = &profile
	if args != "" {
		require.Len(t, config.Profiles[0].PluginConfig, 1)
		raw, err := yaml.YAMLToJSON([]byte(args))
		require.NoError(t, err)
		config.Profiles[0].PluginConfig[0].Args.Raw = raw
	}
	config.LeaderElection.LeaderElect = ptr.To(false)
	content, err := yaml.Marshal(config)
	require.NoError(t, err)
	return content
}

// TestWithoutTheGate checks the metrics of a scheduler whose feature gate is off. Package test/rollout tests the effect of the
// gate on claims.
func TestWithoutTheGate(t *testing.T) {
	t.Parallel()
	l := newLab(t, "gate", 1)
	driver := l.Ring(t, 8).Drivers()[0]
	scheduler := cluster.StartScheduler(t, controlplane.SchedulerOptions{
		Name: gateOffProfile, Config: celsetConfig(t, gateOffProfile, ""), User: env.Scheduler.Name,
		FeatureGates: map[string]bool{v1alpha1.FeatureGate: false},
	})
	l.Run(t, "constrained", gateOffProfile, env.Request("mla", driver, 3), env.Constrained("ring3", env.Contiguous(driver, 3)))
	l.RequireRefused(t, "constrained", "resourceclaim "+l.Namespace+"/constrained has a CEL device constraint, "+
		"but the feature gate DRACELDeviceConstraint is disabled: enable it with --feature-gates=DRACELDeviceConstraint=true")
	_, values := scrape(t, scheduler)
	require.GreaterOrEqual(t, values["celset_scheduler_refused_scheduling_attempts_total gate_disabled"], 1.0)
	require.GreaterOrEqual(t, values["celset_scheduler_claims cel pending"], 1.0)
	require.Zero(t, values["celset_scheduler_allocation_duration_seconds cel allocated"])
	metrics, err := scheduler.Get(t.Context(), "/metrics")
	require.NoError(t, err)
	require.Contains(t, string(metrics), `kubernetes_feature_enabled{name="DRACELDeviceConstraint",stage="ALPHA"} 0`)
}

func TestGateIsShownByMetricsAndHelp(t *testing.T) {
	t.Parallel()
	metrics, err := cluster.scheduler.Get(t.Context(), "/metrics")
	require.NoError(t, err)
	require.Contains(t, string(metrics), `kubernetes_feature_enabled{name="DRACELDeviceConstraint",stage="ALPHA"} 1`)

	help, err := exec.CommandContext(t.Context(), cluster.Binary(controlplane.CelsetScheduler), "--help").CombinedOutput()
	require.NoError(t, err)
	require.Regexp(t, `DRACELDeviceConstraint=true\|false \(ALPHA - default=false\)`, string(help))
}

func TestSchedulerExitsOnInvalidArguments(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ args, want string }{
		"unknown field": {
			args: "filterTimeOut: 1s",
			want: "args.filterTimeOut: Invalid value: unknown field",
		},
		"value out of range": {
			args: "{filterTimeout: -1s, bindingTimeout: 1ms}",
			want: "must be zero, for no limit, or positive, args.bindingTimeout: Invalid value:",
		},
		"arguments of the stock plugin": {
			args: "{apiVersion: kubescheduler.config.k8s.io/v1, kind: DynamicResourcesArgs}",
			want: "args.kind: Unsupported value:",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := cluster.ControlPlane.StartScheduler(t.Context(), controlplane.SchedulerOptions{
				Name:   "celset-invalid-arguments",
				Config: celsetConfig(t, "celset-invalid-arguments", tc.args),
				User:   env.Scheduler.Name,
			})
			require.ErrorContains(t, err, "ended by itself: exit status 1")
			require.ErrorContains(t, err, "DynamicResourcesCEL")
			require.ErrorContains(t, err, tc.want)
		})
	}
}
