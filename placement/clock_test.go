// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/cel/cluster/clock"
)

// window is a cluster with a maintenance window, in minutes from now.
func window(name string, from, to int) *clusterv1.ManagedCluster {
	result := managed(name)
	result.Annotations = map[string]string{
		"from": now.Add(time.Duration(from) * time.Minute).Format(time.RFC3339),
		"to":   now.Add(time.Duration(to) * time.Minute).Format(time.RFC3339),
	}
	return result
}

const inWindow = `timestamp(managedCluster.metadata.annotations.from) <= now() && now() < timestamp(managedCluster.metadata.annotations.to)`

// A Placement is to be decided again when the answer on some cluster changes, and then the
// answers on those clusters are found out again, and no others.
func TestTimeChangesWhatIsSelected(t *testing.T) {
	h := newHub(window("a", -10, 20), window("b", 30, 40), window("c", 30, 60), window("d", -20, -10))
	object, s := placed(t, withExpressions(inWindow)), newScheduler(t)
	at := now.Add(3 * time.Second)
	for _, step := range []struct {
		// next is when to decide again, in minutes from now; 0 is never.
		next      int
		evaluated int
		selected  []string
	}{
		{20, 4, []string{"a"}},
		{30, 1, []string{}},
		{40, 2, []string{"b", "c"}},
		{60, 1, []string{"c"}},
		{0, 1, []string{}},
	} {
		result, err := s.Schedule(t.Context(), object, h.snapshot(), at)
		require.NoError(t, err)
		require.Equal(t, step.selected, selected(t, result))
		require.Equal(t, step.evaluated, result.Evaluated)
		require.Equal(t, 4-step.evaluated, result.Remembered)
		if step.next == 0 {
			require.Zero(t, result.Requeue)
			break
		}
		require.Equal(t, now.Add(time.Duration(step.next)*time.Minute), result.Requeue)

		// A moment before nothing is otherwise, and nothing is evaluated.
		before, err := s.Schedule(t.Context(), object, h.snapshot(), result.Requeue.Add(-time.Nanosecond))
		require.NoError(t, err)
		require.Equal(t, step.selected, selected(t, before))
		require.Zero(t, before.Evaluated)
		require.Equal(t, result.Requeue, before.Requeue)
		at = result.Requeue
	}
}

// A clock that was put back, or forward, is the time: what was said of another time is found
// out again.
func TestClockIsPutBackAndForward(t *testing.T) {
	c := &counting{t, newScheduler(t), newHub(window("a", 0, 20)), placed(t, withExpressions(inWindow))}
	require.Equal(t, 1, c.count(now.Add(time.Minute)))
	require.Equal(t, 0, c.count(now.Add(19*time.Minute)))
	require.Equal(t, 0, c.count(now.Add(time.Minute)))
	require.Equal(t, 1, c.count(now), "a minute before the answer was found")
	require.Equal(t, 1, c.count(now.Add(-1000*time.Hour)))
	require.Equal(t, 1, c.count(now.Add(1000*time.Hour)))
	require.Equal(t, 0, c.count(now.Add(100_000*time.Hour)), "the window is over for good")
	require.Equal(t, 1, c.count(now))
	require.True(t, schedule(t, c.object, c.hub).Timed)
}

// What can't be followed is evaluated once in ten seconds, however often a Placement is decided.
func TestWhatIsNotFollowedIsEvaluatedOncePerTick(t *testing.T) {
	c := &counting{t, newScheduler(t), newHub(several("a", "b")...), placed(t, withExpressions(`string(now()) != ""`))}
	for second := range 40 {
		want := 0
		if second%10 == 0 {
			want = 2
		}
		require.Equal(t, want, c.count(now.Add(time.Duration(second)*time.Second+time.Nanosecond)), "after %d s", second)
	}
}

// All clusters are asked at the same time, and no expression has a reason to ask more often
// than once per tick.
func TestOneDecisionHasOneTime(t *testing.T) {
	var clusters []*clusterv1.ManagedCluster
	for i := range 50 {
		clusters = append(clusters, managed(fmt.Sprintf("c%02d", i)))
	}
	for _, expression := range []string{`now() == timestamp("2026-08-01T12:00:00Z")`, `now().getMilliseconds() == 0 && now().getSeconds() == 0`, `string(now()) == "2026-08-01T12:00:00Z"`} {
		for _, after := range []time.Duration{0, time.Nanosecond, clock.Tick - time.Nanosecond} {
			result, err := newScheduler(t).Schedule(t.Context(), placed(t, withExpressions(expression)), newHub(clusters...).snapshot(), now.Add(after))
			require.NoError(t, err)
			require.Len(t, selected(t, result), len(clusters))
			require.Equal(t, now.Add(clock.Tick), result.Requeue, expression)
		}
	}
}

// Of several predicates those that were asked count.
func TestPredicatesWithNow(t *testing.T) {
	h := newHub(managed("a", "early="), managed("b"))
	h.clusters[1].CreationTimestamp = metav1.NewTime(now.Add(-23 * time.Hour))
	spec := `
predicates:
- requiredClusterSelector: {labelSelector: {matchExpressions: [{key: early, operator: Exists}]}, celSelector: {celExpressions: ['now() < timestamp("2026-08-01T15:00:00Z")']}}
- requiredClusterSelector: {labelSelector: {matchExpressions: [{key: early, operator: DoesNotExist}]}, celSelector: {celExpressions: ['now() - timestamp(managedCluster.metadata.creationTimestamp) >= duration("24h")']}}
`
	result := schedule(t, placed(t, spec), h)
	require.Equal(t, []string{"a"}, selected(t, result))
	require.Equal(t, now.Add(time.Hour), result.Requeue)
	h.clusters = h.clusters[:1]
	require.Equal(t, now.Add(3*time.Hour), schedule(t, placed(t, spec), h).Requeue)
	h.clusters[0] = managed("a", "early=", "late=")
	require.Zero(t, schedule(t, placed(t, `predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {late: "1"}}, celSelector: {celExpressions: ['now() < timestamp("2026-08-01T15:00:00Z")']}}}]`), h).Requeue)
}

// A decision that takes several attempts has one time: else what holds for a tick would never be
// known of all clusters.
func TestAttemptsAtOneDecisionHaveOneTime(t *testing.T) {
	const all = 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		h, s := newSlow(80*time.Millisecond, "a", "b", "c"), newHurried(t)
		object := placed(t, withExpressions(slowly, `string(now()) == "2026-08-01T12:00:00Z"`))
		for _, after := range []time.Duration{0, 15 * time.Second} {
			requireOverrun(t, h.scheduleAt(t, s, object, all, now.Add(after)))
		}
		result := h.scheduleAt(t, s, object, all, now.Add(30*time.Second))
		require.Nil(t, result.Overrun)
		require.Equal(t, []string{"a", "b", "c"}, selected(t, result))
		require.Equal(t, now.Add(clock.Tick), result.Requeue, "which is over: it is to be decided again at once")
		require.Empty(t, selected(t, h.scheduleAt(t, s, object, all, now.Add(30*time.Second))), "now the time goes on")
	})
}

// A decision that takes too long ends up with the time as it is, and so does one after the clock
// was put back.
func TestTheTimeOfAttemptsGoesOnInTheEnd(t *testing.T) {
	for _, after := range []time.Duration{time.Minute, -time.Nanosecond} {
		synctest.Test(t, func(t *testing.T) {
			h, s := newSlow(80*time.Millisecond, "a", "b"), newHurried(t)
			object := placed(t, withExpressions(slowly, `string(now()) == "2026-08-01T12:00:00Z"`))
			requireOverrun(t, h.schedule(t, s, object, 100*time.Millisecond))
			h.takes["b"] = 0
			require.Empty(t, selected(t, h.scheduleAt(t, s, object, time.Minute, now.Add(after))))
		})
	}
}
