// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/malformed"
	"github.com/celset/celset/placement"
)

// malformedHub draws a Placement and the rest of its hub. There is always a cluster
// that can be chosen if the Placement can.
type malformedHub struct {
	object *clusterv1beta1.Placement
	hub    *hub
}

func drawMalformed(random *rand.Rand) malformedHub {
	result := malformedHub{malformed.Placement(random), newHub(managed("fine"))}
	h := result.hub
	many := func(draw func()) {
		for range random.IntN(4) {
			draw()
		}
	}
	many(func() { h.clusters = append(h.clusters, malformed.Cluster(random)) })
	many(func() { h.sets = append(h.sets, malformed.Set(random)) })
	many(func() { h.bindings = append(h.bindings, malformed.Binding(random)) })
	many(func() {
		score := malformed.Score(random)
		h.scores[score.Namespace+"/"+score.Name] = score
	})
	many(func() { h.decisions.Set(malformed.Decision(random)) })
	if random.IntN(10) == 0 {
		h.clusters, h.sets, h.bindings = append(h.clusters, nil), append(h.sets, nil), append(h.bindings, nil)
		h.decisions.Set(nil)
	}
	if random.IntN(4) > 0 {
		result.object.Spec.ClusterSets = nil
		h.bindings = append(h.bindings, binding(result.object.Namespace, "global"))
	}
	return result
}

// Whatever is wrong: no panic, and a mistake in the Placement always comes with
// its conditions and without a decision, unless there is nothing to choose from.
func TestMalformedObjects(t *testing.T) {
	n, s := cases.Of(1000, 10_000), newScheduler(t)
	outcomes := map[string]int{}
	for seed := range n {
		m := drawMalformed(rand.New(rand.NewPCG(uint64(seed), cases.Seed())))
		m.hub.decided(m.object.Namespace, m.object.Name, "fine", "fine", "", "gone", "a")
		m.requireTold(t, s, seed, outcomes)
		s.Forget(m.object.UID)
	}
	for _, outcome := range []string{"misconfigured", "decided", "nothing to choose from", "none selected", "failed on a cluster"} {
		require.Greater(t, outcomes[outcome], n/100, "%s: too rare to tell: %v", outcome, outcomes)
	}
}

func (m malformedHub) requireTold(t *testing.T, s *placement.Scheduler, seed int, outcomes map[string]int) {
	wrong := uninterrupted(s.Validate(t.Context(), m.object))
	result, err := s.Schedule(t.Context(), m.object, m.hub.snapshot(), now)
	require.NoError(t, err, seed)
	require.Len(t, result.Misconfigurations, len(wrong), seed)
	require.Len(t, result.Conditions, 3, seed)
	for _, condition := range result.Conditions {
		require.LessOrEqual(t, len(condition.Message), 32768, seed)
		require.NotEmpty(t, condition.Message, seed)
	}
	for _, one := range wrong {
		require.NotEmpty(t, one.Plugin, seed)
		require.NotEmpty(t, one.Path.String(), seed)
		require.NotEmpty(t, one.Unwrap().Error(), seed)
	}
	if len(wrong) > 0 && len(result.Available.Clusters) > 0 {
		require.Nil(t, result.Decision, seed)
	}
	if result.Decision != nil {
		require.NotEmpty(t, result.Decision.Objects(m.object), seed)
		if result.Decision.Clusters == 0 {
			m.requireEmptyForAReason(t, result, seed)
		}
	}
	status := result.ApplyTo(m.object.Status)
	require.Equal(t, result.Decision == nil, status.DecisionGroups == nil, seed)
	require.NotEmpty(t, result.Describe(), seed)
	outcomes[m.outcome(result)]++
	for _, condition := range result.Conditions {
		if condition.Type == placement.ConditionEvaluationFailed && condition.Status == metav1.ConditionTrue {
			outcomes["failed on a cluster"]++
		}
	}
}

// requireEmptyForAReason demands that no cluster is lost only because its evaluation
// failed.
func (m malformedHub) requireEmptyForAReason(t *testing.T, result *placement.Result, seed int) {
	if len(result.Available.Clusters) == 0 || m.object.Spec.NumberOfClusters != nil && *m.object.Spec.NumberOfClusters == 0 {
		return
	}
	chosen := map[string]bool{"fine": true, "a": true}
	for _, removal := range result.Filters[0].Removed {
		if _, failed := removal.Reason.(*placement.Failed); failed && chosen[removal.Cluster] {
			require.NotEmpty(t, m.taintsOf(removal.Cluster, result), "%d: %s", seed, result.Describe())
		}
	}
}

func (m malformedHub) taintsOf(name string, result *placement.Result) []clusterv1.Taint {
	for _, c := range result.Available.Clusters {
		if c.Name == name {
			return c.Spec.Taints
		}
	}
	return nil
}

func (m malformedHub) outcome(result *placement.Result) string {
	switch {
	case len(result.Misconfigurations) > 0:
		return "misconfigured"
	case len(result.Available.Clusters) == 0:
		return "nothing to choose from"
	case result.Decision == nil:
		return "stands"
	case result.Decision.Clusters == 0:
		return "none selected"
	default:
		return "decided"
	}
}
