// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/internal/env"
)

// window returns the values of the ClusterClaims that publish a cluster's maintenance window.
func window(from, to time.Time) map[string]string {
	return map[string]string{"window-from": from.UTC().Format(time.RFC3339), "window-to": to.UTC().Format(time.RFC3339)}
}

// TestMaintenanceWindowsOpenAndClose creates clusters that publish their maintenance windows, and a Placement that selects
// clusters whose window is open. No object changes when a window opens or closes, so the controller must decide the Placement
// at each tick.
func TestMaintenanceWindowsOpenAndClose(t *testing.T) {
	cases.OnlyNightly(t, "waits for a window to open and to close")
	const inWindow = `
predicates:
- requiredClusterSelector:
    celSelector:
      celExpressions:
      - |
        managedCluster.status.clusterClaims.exists(c, c.name == "window-from" && timestamp(c.value) <= now()) &&
        managedCluster.status.clusterClaims.exists(c, c.name == "window-to" && now() < timestamp(c.value))
`
	s := newFleet(t, "")
	hour := time.Now().Truncate(time.Hour)
	s.join(t, "always", traits{claims: window(hour.Add(-time.Hour), hour.Add(24*time.Hour))})
	s.join(t, "past", traits{claims: window(hour.Add(-2*time.Hour), hour.Add(-time.Hour))})
	s.join(t, "later", traits{claims: window(hour.Add(24*time.Hour), hour.Add(25*time.Hour))})
	soon := s.join(t, "soon", traits{claims: window(hour.Add(24*time.Hour), hour.Add(25*time.Hour))})
	s.place(t, "maintenance", inWindow)
	s.requireSelected(t, "maintenance", "always")
	s.requireCondition(t, "maintenance", wellknown.ConditionEvaluationFailed, "False "+wellknown.ReasonEvaluationsSucceeded)

	// The window must open after the controller has seen it. On a busy machine that takes longer, so try windows that open
	// later and later.
	var opens time.Time
	for ahead := 30 * time.Second; time.Until(opens) < cluster.DefaultTick/2; ahead *= 2 {
		require.Less(t, ahead, env.Patience)
		evaluations := s.observed.evaluations()
		opens = cluster.Moment(time.Now().Add(ahead), cluster.DefaultTick)
		changeStatus(t, s, soon, func(c *clusterv1.ManagedCluster) {
			c.Status.ClusterClaims = claimsOf(window(opens, opens.Add(2*cluster.DefaultTick)))
		})
		env.Becomes(t, true, func() bool { return s.observed.evaluations() > evaluations })
	}
	s.requireSelected(t, "maintenance", "always", "soon")
	require.False(t, time.Now().Before(opens), "it is selected before its window opens")
	s.requireSelected(t, "maintenance", "always")
	require.False(t, time.Now().Before(opens.Add(2*cluster.DefaultTick)), "it goes before its window closes")
}
