// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/minor"
)

// rolloutProfile is the profile of a scheduler that is started again and again.
const rolloutProfile = "celset-rollout"

// rollout is one profile whose scheduler is replaced by another with other flags.
type rollout struct {
	scheduler *controlplane.Process
	replaced  int
}

// replace ends the scheduler that there is and starts one with the gate on or off.
func (r *rollout) replace(t *testing.T, enabled bool) {
	t.Helper()
	r.stop()
	r.replaced++
	var err error
	r.scheduler, err = cluster.StartScheduler(t.Context(), controlplane.SchedulerOptions{
		Name:         fmt.Sprintf("%s-%d", rolloutProfile, r.replaced),
		Config:       configBeside(t, rolloutProfile, ""),
		User:         serviceAccount,
		FeatureGates: minor.SchedulerGates(map[string]bool{v1alpha1.FeatureGate: enabled}),
	})
	require.NoError(t, err)
}

func (r *rollout) stop() {
	if r.scheduler != nil {
		r.scheduler.Stop()
	}
}

// keeps are claims that nothing may happen to.
type keeps map[string]*resourceapi.ResourceClaim

func (k keeps) keep(t *testing.T, l *lab, names ...string) {
	t.Helper()
	for _, name := range names {
		k[name] = l.claim(t, name)
	}
}

// require checks that the claims have what they had and that their pods run.
func (k keeps) require(t *testing.T, l *lab) {
	t.Helper()
	for name, before := range k {
		after := l.claim(t, name)
		require.Equal(t, before.UID, after.UID)
		require.Empty(t, cmp.Diff(before.Spec, after.Spec), "specification of claim %s", name)
		require.Empty(t, cmp.Diff(before.Status.Allocation, after.Status.Allocation), "allocation of claim %s", name)
		require.Equal(t, corev1.PodRunning, l.pod(t, name).Status.Phase, "pod %s", name)
	}
}

// TestRolloutAndRollback enables the feature, disables it while pods run that use it,
// and enables it again. What was allocated stays; what could not be meanwhile waits and
// gets its devices without being touched; no device is handed out twice.
func TestRolloutAndRollback(t *testing.T) {
	t.Parallel()
	l := newLab(t, "rollout", 1)
	ring := l.ring(t, 12)
	driver := ring.Drivers()[0]
	three := []part{request("mla", driver, 3), constrained("ring3", contiguous(driver, 3))}
	r, kept := &rollout{}, keeps{}
	t.Cleanup(r.stop)

	r.replace(t, true)
	l.run(t, "before", rolloutProfile, three...)
	l.requireRunning(t, "before")
	kept.keep(t, l, "before")

	r.stop()
	l.run(t, "between", rolloutProfile, three...)
	r.replace(t, false)
	gate := "the feature gate DRACELDeviceConstraint is disabled"
	l.requireRefused(t, "between", gate)
	l.run(t, "during", rolloutProfile, three...)
	l.requireRefused(t, "during", gate)
	l.run(t, "plain", rolloutProfile, request("mla", driver, 2))
	l.createPod(t, "joins", rolloutProfile, "before")
	l.requireRunning(t, "plain", "joins")
	kept.keep(t, l, "plain")
	kept.require(t, l)
	_, values := scrape(t, r.scheduler)
	require.GreaterOrEqual(t, values["celset_refused_scheduling_attempts_total gate_disabled"], 2.0)
	require.GreaterOrEqual(t, values["celset_claims cel allocated"], 1.0)
	require.GreaterOrEqual(t, values["celset_claims cel pending"], 2.0)
	require.Zero(t, values["celset_allocation_duration_seconds cel allocated"])

	r.replace(t, true)
	l.requireRunning(t, "between", "during")
	kept.require(t, l)
	kept.keep(t, l, "between", "during")

	// What the first scheduler allocated is given back while the third runs.
	l.requireDisjoint(t, ring.Contiguous, "before", "between", "during")
	l.requireDisjoint(t, nil, "before", "between", "during", "plain")
	l.deletePod(t, "before")
	l.deletePod(t, "joins")
	l.requireFreed(t, "before")
	freed := deviceNames(kept["before"])
	delete(kept, "before")
	l.run(t, "after", rolloutProfile, three...)
	l.requireRunning(t, "after")
	require.ElementsMatch(t, freed, l.devicesOf(t, "after"), "these were the only three in a row that are free")
	kept.require(t, l)
	l.requireDisjoint(t, ring.Contiguous, "between", "during", "after")
}

// requireDisjoint checks that no two claims have the same device, and that the devices
// of each have the given shape, if any.
func (l *lab) requireDisjoint(t *testing.T, shape func([]string) bool, claims ...string) {
	t.Helper()
	owner := map[string]string{}
	for _, claim := range claims {
		devices := deviceNames(l.claim(t, claim))
		if shape != nil {
			require.True(t, shape(devices), "devices %q of claim %s", devices, claim)
		}
		for _, device := range devices {
			require.Empty(t, owner[device], "device %s is given to claim %s too", device, claim)
			owner[device] = claim
		}
	}
}
