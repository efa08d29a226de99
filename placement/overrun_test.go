// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement"
)

// slowly is an expression that looks up the scores of a cluster. The evaluation checks its deadline after that.
const slowly = `managedCluster.scores("r").all(s, s.value > 0)`

// slow is a hub where looking up a cluster's scores takes some time. In a synctest bubble that time does not depend on the
// machine.
type slow struct {
	*hub
	takes map[string]time.Duration
	// asked has the clusters whose scores were looked up.
	asked []string
}

func newSlow(takes time.Duration, names ...string) *slow {
	result := &slow{newHub(several(names...)...), map[string]time.Duration{}, nil}
	// CEL checks the deadline only after a number of elements, so each score has many.
	values := map[string]int32{}
	for i := range 300 {
		values[fmt.Sprint("s", i)] = 1
	}
	for _, name := range names {
		result.score(name, "r", values)
		result.takes[name] = takes
	}
	return result
}

func (s *slow) FindScore(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error) {
	s.asked = append(s.asked, namespace)
	time.Sleep(s.takes[namespace])
	return s.hub.FindScore(namespace, name)
}

// schedule decides a Placement. all is the time limit for all evaluations together.
func (s *slow) schedule(t *testing.T, scheduler *placement.Scheduler, object *clusterv1beta1.Placement, all time.Duration) *placement.Result {
	t.Helper()
	return s.scheduleAt(t, scheduler, object, all, now)
}

func (s *slow) scheduleAt(t *testing.T, scheduler *placement.Scheduler, object *clusterv1beta1.Placement, all time.Duration, at time.Time) *placement.Result {
	t.Helper()
	s.asked = nil
	ctx, cancel := placement.WithDeadline(t.Context(), all, all)
	defer cancel()
	snapshot := s.snapshot()
	snapshot.Scores = s
	result, err := scheduler.Schedule(ctx, object, snapshot, at)
	require.NoError(t, err)
	// Later decisions look up the scores of evaluated clusters to compare them. These lookups must take no time.
	late := map[string]bool{}
	for _, removal := range result.Filters[0].Removed {
		_, late[removal.Cluster] = removal.Reason.(*placement.Late)
	}
	for name := range s.takes {
		if !late[name] {
			s.takes[name] = 0
		}
	}
	return result
}

func newHurried(t *testing.T) *placement.Scheduler {
	t.Helper()
	result, err := placement.NewScheduler(placement.Config{Environment: environment, EvaluationTimeout: 100 * time.Millisecond})
	require.NoError(t, err)
	return result
}

// requireOverrun requires a result with an Overrun, without a decision, and with these messages in the condition.
func requireOverrun(t *testing.T, result *placement.Result, message ...string) {
	t.Helper()
	require.NotNil(t, result.Overrun, described(result))
	require.Nil(t, result.Decision)
	require.Empty(t, result.Candidates)
	for _, text := range message {
		requireCondition(t, result, wellknown.ConditionEvaluationFailed, metav1.ConditionTrue, wellknown.ReasonEvaluationFailed, text)
	}
	requireCondition(t, result, clusterv1beta1.PlacementConditionMisconfigured, metav1.ConditionFalse, wellknown.ReasonConfigured, "")
	stands := "the previous decision stays in effect"
	if result.FormerClusters == 0 {
		stands = "no cluster is selected"
	}
	requireSatisfied(t, result, metav1.ConditionFalse, wellknown.ReasonNotScheduled, "The evaluation takes too long; "+stands)
}

const firstExpression = "spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[0]"

func TestAnEvaluationThatTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s, object := newSlow(time.Millisecond, "a", "b", "c"), newHurried(t), placed(t, withExpressions(slowly))
		h.decided("ns", "p", "b")
		h.takes["b"] = time.Second
		result := h.schedule(t, s, object, time.Minute)
		requireOverrun(t, result,
			"The evaluation takes longer than 100ms on a cluster; the previous decision stays in effect. Write a cheaper expression",
			"\nb can't be evaluated in time: "+firstExpression+" takes longer than 100ms\n2 of 3 clusters are evaluated")
		require.True(t, result.Overrun.Evaluations)
		require.Equal(t, []string{"a", "b", "c"}, h.asked, "one does not keep others from being evaluated")

		h.schedule(t, s, object, time.Minute)
		require.Contains(t, h.asked, "b", "time may suffice when it is tried again")
		h.takes["b"] = 99 * time.Millisecond
		result = h.schedule(t, s, object, time.Minute)
		require.Nil(t, result.Overrun)
		require.Equal(t, 3, result.Decision.Clusters)
		require.Equal(t, 1, result.Evaluated, "the others are remembered")
		require.Greater(t, result.TotalCost, 2*result.Cost)
	})
}

func TestManyEvaluationsThatTakeTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newSlow(time.Second, "a", "b", "c", "d", "e"), newHurried(t)
		result := h.schedule(t, s, placed(t, withExpressions(slowly)), time.Minute)
		requireOverrun(t, result, "a can't be", "b can't be", "c can't be", "0 of 5 clusters are evaluated")
		require.Equal(t, []string{"a", "b", "c"}, h.asked, "more need not be known")
		require.Equal(t, 3, result.Evaluated)
		require.Zero(t, result.Remembered)
		require.Equal(t, 5, result.Overrun.Pending)
		require.Equal(t, "is not evaluated yet", result.Filters[0].Removed[4].Reason.String())
	})
}

// TestAnotherPredicateDoesNotSaveTime checks that a cluster has no verdict if one predicate takes too long, even if another
// predicate matches. On a faster machine the result would have another reason.
func TestAnotherPredicateDoesNotSaveTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newSlow(time.Second, "a"), newHurried(t)
		object := placed(t, withExpressions(slowly))
		object.Spec.Predicates = append(object.Spec.Predicates, clusterv1beta1.ClusterPredicate{})
		requireOverrun(t, h.schedule(t, s, object, time.Minute), "0 of 1 clusters")
	})
}

// TestAllEvaluationsTogetherTakeTooLong checks that each attempt continues where the last attempt stopped, even if clusters
// change.
func TestAllEvaluationsTogetherTakeTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 10 {
			names = append(names, fmt.Sprintf("c%d", i))
		}
		h, s, object := newSlow(40*time.Millisecond, names...), newHurried(t), placed(t, withExpressions(slowly))
		h.decided("ns", "p", "c9")
		result := h.schedule(t, s, object, 100*time.Millisecond)
		requireOverrun(t, result,
			"The evaluation takes longer than 100ms on all clusters together; the previous decision stays in effect. The evaluation continues later",
			"c2 is not evaluated yet: "+firstExpression+" did not end within 100ms, the limit for all clusters together\n2 of 10 clusters are evaluated")
		require.False(t, result.Overrun.Evaluations)
		require.Equal(t, names[:3], h.asked)

		result = h.schedule(t, s, object, 100*time.Millisecond)
		requireOverrun(t, result, "4 of 10 clusters")
		require.Equal(t, 2, result.Remembered)

		h.clusters = h.clusters[1:]
		requireOverrun(t, h.schedule(t, s, object, 100*time.Millisecond), "5 of 9 clusters")
		h.update(0, func(c *clusterv1.ManagedCluster) { c.Labels["a"], h.takes[c.Name] = "b", 40*time.Millisecond })
		requireOverrun(t, h.schedule(t, s, object, 100*time.Millisecond), "6 of 9 clusters")
		result = h.schedule(t, s, object, time.Minute)
		require.Equal(t, 9, result.Decision.Clusters)
		require.Equal(t, 3, result.Evaluated)
		require.Equal(t, 6, result.Remembered)
	})
}

// TestWhatIsNoOverrun checks that a deadline only affects Placements with something to evaluate. TestInterruption checks a
// context that ends because the program stops.
func TestWhatIsNoOverrun(t *testing.T) {
	h := newHub(several("a")...)
	late, cancelLate := placement.WithDeadline(t.Context(), -time.Second, time.Second)
	defer cancelLate()
	result, err := newHurried(t).Schedule(late, placed(t, ``), h.snapshot(), now)
	require.NoError(t, err)
	require.Equal(t, 1, result.Decision.Clusters, "nothing is to be evaluated")
	for _, spec := range []string{withExpressions(`true`), `predicates: [{requiredClusterSelector: {labelSelector: {}}}]`} {
		result, err = newHurried(t).Schedule(late, placed(t, spec), h.snapshot(), now)
		require.NoError(t, err)
		requireOverrun(t, result, "The evaluation takes longer than 1s", "0 of 1 clusters")
		require.True(t, strings.HasSuffix(result.Overrun.Limit.Error(), "1s"))
	}
}

// TestOneDecisionHasOneTime checks that now() has the same value on all clusters, and that it changes only at ticks. So an
// expression can't enforce decisions more often than once per tick.
func TestOneDecisionHasOneTime(t *testing.T) {
	clusters := numbered(0, 50)
	for _, expression := range []string{`now() == timestamp("2026-08-01T12:00:00Z")`, `now().getMilliseconds() == 0 && now().getSeconds() == 0`, `string(now()) == "2026-08-01T12:00:00Z"`} {
		for _, after := range []time.Duration{0, time.Nanosecond, cluster.DefaultTick - time.Nanosecond} {
			result, err := newScheduler(t).Schedule(t.Context(), placed(t, withExpressions(expression)), newHub(clusters...).snapshot(), now.Add(after))
			require.NoError(t, err)
			require.Len(t, selected(t, result), len(clusters))
			require.Equal(t, now.Add(cluster.DefaultTick), result.Requeue, expression)
		}
	}
}

// TestAttemptsAtOneDecisionHaveOneTime checks that now() has the same value in all attempts of one decision. Otherwise a
// decision that takes longer than a tick would never be complete.
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
		require.Equal(t, now.Add(cluster.DefaultTick), result.Requeue, "which is over: it is to be decided again at once")
		require.Empty(t, selected(t, h.scheduleAt(t, s, object, all, now.Add(30*time.Second))), "now the time goes on")
	})
}

// TestTheTimeOfAttemptsGoesOnInTheEnd checks when an incomplete decision starts again with the current time: after it has taken
// too long, and after the clock was set back.
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
