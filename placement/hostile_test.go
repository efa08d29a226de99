// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"pgregory.net/rapid"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/malformed"
	"github.com/celset/celset/placement"
)

// reporting returns a cluster whose status reports these amounts of CPU. The amounts are JSON, as an agent writes them.
func reporting(t require.TestingT, name, capacity, allocatable string) *clusterv1.ManagedCluster {
	result := managed(name)
	status := fmt.Sprintf(`{"capacity": {"cpu": %s}, "allocatable": {"cpu": %s}}`, capacity, allocatable)
	require.NoError(t, json.Unmarshal([]byte(status), &result.Status), status)
	return result
}

const byCPU = "ResourceAllocatableCPU 10"

func TestAmountsThatCannotBeTrue(t *testing.T) {
	for _, amount := range []string{
		`"1e1000"`, `1e1000`, `"1e308"`, `"1e309"`, `"-1e1000"`, `"-1"`, `-1`, `"-5m"`, `"1e16000000"`, `1e16000000`, `"1e2147483647"`, `"-1e2147483647"`,
		`"10E"`, `"9223372036854775808000"`,
	} {
		for _, said := range []*clusterv1.ManagedCluster{reporting(t, "liar", amount, amount), reporting(t, "liar", `"8"`, amount), reporting(t, "liar", amount, `"8"`)} {
			t.Run(amount, func(t *testing.T) {
				h := newHub(reporting(t, "least", `8`, `"2"`), said, reporting(t, "most", `8`, `"6"`))
				result := schedule(t, placed(t, exactly(byCPU)), h)
				require.Equal(t, map[string]int64{"least": -100, "liar": 0, "most": 100}, scoresOf(t, result, placement.ResourceAllocatableCPU))
				require.Equal(t, []placement.Warning{{
					Reason: wellknown.ReasonAmountOutOfRange, Plugin: placement.ResourceAllocatableCPU,
					Message: "The amounts of cpu that ManagedClusters liar report are not numbers from 0 to 2^63-1, so they count as missing",
				}}, result.Warnings)
				require.Equal(t, map[string]int{placement.ResourceAllocatableCPU: 1}, result.OutOfRange)
			})
		}
	}
}

func TestAmountsThatCanBeTrue(t *testing.T) {
	for _, amount := range []string{`0`, `"0"`, `"0e1000"`, `"1n"`, `"1e-300"`, `"1e-16000000"`, `"9E"`, `"9223372036854775807"`, `"7Ei"`, `null`} {
		result := schedule(t, placed(t, exactly(byCPU)), newHub(reporting(t, "a", amount, amount)))
		require.Empty(t, result.OutOfRange, amount)
		require.Equal(t, map[string]int64{"a": 100}, scoresOf(t, result, placement.ResourceAllocatableCPU), amount)
	}
}

// hostile draws a quantity as JSON. The quantity may be strange, but it can be decoded.
func hostile(t *rapid.T) string {
	sign := rapid.SampledFrom([]string{"", "-", "+"}).Draw(t, "sign")
	digits := rapid.StringMatching(`[0-9]{1,15}(\.[0-9]{0,2})?`).Draw(t, "digits")
	suffix := rapid.OneOf(
		rapid.SampledFrom([]string{"", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}),
		rapid.Map(rapid.Int32Range(0, math.MaxInt32), func(n int32) string { return fmt.Sprintf("e%d", n) }),
		rapid.Map(rapid.IntRange(-6, 6), func(n int) string { return fmt.Sprintf("E%d", n) }),
	).Draw(t, "suffix")
	return `"` + sign + digits + suffix + `"`
}

// TestScoresAreInRange checks that scores stay in their range, and that totals are their weighted sums, for all amounts that
// clusters may report.
func TestScoresAreInRange(t *testing.T) {
	object := placed(t, exactly(byCPU, "ResourceAllocatableMemory -10", "Balance 10")+addOn("r", "s", -10))
	s := newScheduler(t)
	cases.Check(t, func(t *rapid.T) {
		h := newHub()
		for i := range rapid.IntRange(1, 6).Draw(t, "clusters") {
			name := fmt.Sprintf("c%d", i)
			h.clusters = append(h.clusters, reporting(t, name, hostile(t), hostile(t)))
			score := h.score(name, "r", map[string]int32{"s": 0})
			score.Status.Scores[0].Value = rapid.Int32().Draw(t, "score")
		}
		result := decide(t, s, object, h)
		for i, c := range result.Candidates {
			total := int64(0)
			for j, score := range c.Scores {
				require.LessOrEqual(t, score, int64(placement.MaxScore))
				require.GreaterOrEqual(t, score, int64(placement.MinScore))
				total += score * int64(result.Prioritizers[j].Weight)
			}
			require.Equal(t, total, c.Total)
			if i > 0 {
				require.LessOrEqual(t, c.Total, result.Candidates[i-1].Total)
			}
		}
	})
}

// malformedHub has a malformed Placement and a hub with malformed objects. The cluster "fine" can be selected if the Placement
// is valid.
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

// TestMalformedObjects checks that malformed objects cause no panic. A mistake in the Placement must set conditions. It must
// prevent a decision, unless no cluster is available.
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
	require.NotEmpty(t, described(result), seed)
	outcomes[m.outcome(result)]++
	for _, condition := range result.Conditions {
		if condition.Type == wellknown.ConditionEvaluationFailed && condition.Status == metav1.ConditionTrue {
			outcomes["failed on a cluster"]++
		}
	}
}

// requireEmptyForAReason requires that a failed evaluation is not the only reason why a formerly selected cluster is lost.
func (m malformedHub) requireEmptyForAReason(t *testing.T, result *placement.Result, seed int) {
	if len(result.Available.Clusters) == 0 || m.object.Spec.NumberOfClusters != nil && *m.object.Spec.NumberOfClusters == 0 {
		return
	}
	chosen := map[string]bool{"fine": true, "a": true}
	for _, removal := range result.Filters[0].Removed {
		if _, failed := removal.Reason.(*placement.Failed); failed && chosen[removal.Cluster] {
			require.NotEmpty(t, m.taintsOf(removal.Cluster, result), "%d: %s", seed, described(result))
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
