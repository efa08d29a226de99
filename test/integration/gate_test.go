// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/controlplane"
)

// gateOffProfile is the one profile of a scheduler that runs without the gate.
const gateOffProfile = "celset-gate-off"

// celsetConfig is the scheduler configuration in manifests with our profile only,
// under another name and with other plugin arguments, if any are given.
func celsetConfig(t *testing.T, profile, args string) []byte {
	t.Helper()
	// As in a cluster; what tests control planes with turns it off by default.
	return configOf(t, profile, args, true)
}

// configBeside is celsetConfig for a scheduler that doesn't wait for the lease, which
// another may have.
func configBeside(t *testing.T, profile, args string) []byte {
	t.Helper()
	return configOf(t, profile, args, false)
}

func configOf(t *testing.T, profile, args string, elects bool) []byte {
	t.Helper()
	config, err := readSchedulerConfig()
	require.NoError(t, err)
	require.Equal(t, celsetProfile, *config.Profiles[1].SchedulerName)
	config.Profiles = config.Profiles[1:]
	config.Profiles[0].SchedulerName = &profile
	if args != "" {
		require.Len(t, config.Profiles[0].PluginConfig, 1)
		raw, err := yaml.YAMLToJSON([]byte(args))
		require.NoError(t, err)
		config.Profiles[0].PluginConfig[0].Args.Raw = raw
	}
	config.LeaderElection.LeaderElect = ptr.To(elects)
	content, err := yaml.Marshal(config)
	require.NoError(t, err)
	return content
}

func TestWithoutTheGateNothingNewIsAllocatedAndNothingOldIsLost(t *testing.T) {
	t.Parallel()
	l := newLab(t, "gate", 1)
	ring := l.ring(t, 8)
	driver := ring.Drivers()[0]
	three := []part{request("mla", driver, 3), constrained("ring3", contiguous(driver, 3))}

	l.run(t, "before", celsetProfile, three...)
	l.requireRunning(t, "before")
	before := l.claim(t, "before")

	scheduler, err := cluster.StartScheduler(t.Context(), controlplane.SchedulerOptions{
		Name:   gateOffProfile,
		Config: celsetConfig(t, gateOffProfile, ""),
		User:   serviceAccount,
	})
	require.NoError(t, err)
	t.Cleanup(scheduler.Stop)

	l.run(t, "constrained", gateOffProfile, three...)
	l.requireRefused(t, "constrained", "resourceclaim "+l.namespace+"/constrained has a CEL device constraint",
		"the feature gate DRACELDeviceConstraint is disabled: enable it with --feature-gates=DRACELDeviceConstraint=true")
	l.run(t, "plain", gateOffProfile, request("mla", driver, 3))
	l.createPod(t, "joins", gateOffProfile, "before")
	l.requireRunning(t, "plain", "joins", "before")

	after := l.claim(t, "before")
	require.Empty(t, cmp.Diff(before.Spec, after.Spec), "fields of the claim")
	require.Empty(t, cmp.Diff(before.Status.Allocation, after.Status.Allocation))
	require.Len(t, after.Status.ReservedFor, 2)
	require.True(t, ring.Contiguous(deviceNames(after)))

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
			_, err := cluster.StartScheduler(t.Context(), controlplane.SchedulerOptions{
				Name:   "celset-invalid-arguments",
				Config: celsetConfig(t, "celset-invalid-arguments", tc.args),
				User:   serviceAccount,
			})
			require.ErrorContains(t, err, "ended by itself: exit status 1")
			require.ErrorContains(t, err, "DynamicResourcesCEL")
			require.ErrorContains(t, err, tc.want)
		})
	}
}
