// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/test/internal/env"
)

// These tests check the statements of docs/ocm.md#differences-from-ocm about mistakes and warnings that need an API server.

// TestExpiredScoreWarnsWithoutRetries checks that an expired score causes a single warning event. The Placement is decided, and
// the controller does not retry.
func TestExpiredScoreWarnsWithoutRetries(t *testing.T) {
	const name = "scored"
	s := newFleet(t, "")
	s.join(t, "a", traits{})
	s.join(t, "b", traits{})
	expired := s.score(t, s, "b", "default", cpuRatio, 100)
	changeStatus(t, s, expired, func(scores *clusterv1alpha1.AddOnPlacementScore) {
		scores.Status.ValidUntil = ptr.To(metav1.NewTime(time.Now().Add(-time.Hour)))
	})
	s.place(t, name, best(1, "default", cpuRatio, 1))
	s.requireSelected(t, name, "a")
	s.requireSatisfied(t, name)
	warned := []string{"AddOnPlacementScores b/default expired, so they count as 0 in plugin AddOn/default/cpuratio"}
	env.Becomes(t, warned, func() []string { return s.notes(t, name, wellknown.ReasonScoreExpired) })
	failures := counted(t, "controller_runtime_reconcile_errors_total")
	s.score(t, s, "a", "default", cpuRatio, 1)
	change(t, s, s.live(t, name), func(p *clusterv1beta1.Placement) { p.Spec.NumberOfClusters = ptr.To[int32](2) })
	s.requireSelected(t, name, "a", "b")
	require.Equal(t, warned, s.notes(t, name, wellknown.ReasonScoreExpired))
	require.InDelta(t, failures, counted(t, "controller_runtime_reconcile_errors_total"), 0)
}
