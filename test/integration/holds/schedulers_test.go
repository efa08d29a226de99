// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/test/internal/crossing"
	"github.com/celset/celset/test/internal/env"
)

// TestEqualHoldsOfTwoSchedulers makes two schedulers hold the same devices for pods of the same priority, before either has
// seen the other's hold. Both schedulers must keep the same hold and end the other.
func TestEqualHoldsOfTwoSchedulers(t *testing.T) {
	t.Parallel()
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			s := newScene(t, "equals", 1, f)
			victims := s.fill(s.Nodes[0], "victim", "p10")
			profile, second := s.second()
			barriers := []*crossing.Barrier{s.crossing.Stop(0, crossing.IsEviction), second.Stop(0, crossing.IsEviction)}
			s.run("ours", f.all(s.driver), of("p50"))
			s.run("theirs", f.all(s.driver), of("p50"), by(profile))
			for _, barrier := range barriers {
				env.Receive(t, "the record of a hold", barrier.Reached())
			}
			for _, barrier := range barriers {
				barrier.Release()
			}
			s.ending(victims...)
			winner, loser := s.oneHolds("ours", "theirs")
			s.end(victims...)
			s.RequireRunning(t, winner)
			s.requireUnbound(loser)
			s.requireEvicted(victims...)
			require.Equal(t, wellknown.ReasonOutranked, s.record(loser).Reason)
			require.Nil(t, s.Claim(t, loser).Status.Allocation)
		})
	}
}

// oneHolds waits until, by the conditions of two pods, devices are held for exactly one of them. It returns this pod first.
func (s *scene) oneHolds(a, b string) (holds, doesNot string) {
	s.Helper()
	env.Eventually(s, "devices are held for one of two pods", func(context.Context) (string, error) {
		ofA, ofB := s.record(a).Status, s.record(b).Status
		switch {
		case ofA == corev1.ConditionTrue && ofB == corev1.ConditionFalse:
			holds, doesNot = a, b
		case ofA == corev1.ConditionFalse && ofB == corev1.ConditionTrue:
			holds, doesNot = b, a
		default:
			return fmt.Sprintf("the conditions are %q and %q", ofA, ofB), nil
		}
		return "", nil
	})
	return holds, doesNot
}

// TestHigherHoldOfAnotherScheduler makes a second scheduler hold the same devices for a pod of a higher priority. The first
// scheduler must end its hold, even while its last eviction request is being processed.
func TestHigherHoldOfAnotherScheduler(t *testing.T) {
	s := newScene(t, "above", 1, wholeDevices)
	victims := s.fill(s.Nodes[0], "victim", "p10")
	profile, _ := s.second()
	last := s.crossing.Stop(units-1, crossing.IsDeletion)
	s.run("job", s.form.all(s.driver), of("p50"))
	env.Receive(t, "the last eviction", last.Reached())
	s.run("top", inARow(s.driver, units), of("p90"), by(profile))
	s.ending(victims...)
	env.Eventually(t, "the hold of the lower priority is broken", func(context.Context) (string, error) {
		return map[bool]string{false: "it is not"}[s.record("job").Reason == wellknown.ReasonOutranked], nil
	})
	last.Release()
	s.end(victims...)
	s.RequireRunning(t, "top")
	s.requireKept("job")
	s.requireEvicted(victims...)
	s.requireNothingHeld()
}

// TestAnotherSchedulerTakesDevices makes a second scheduler allocate a held device, when it is free, to a pod of a higher
// priority. The first scheduler must end its hold when it sees the allocation.
func TestAnotherSchedulerTakesDevices(t *testing.T) {
	s := newScene(t, "taken", 1, wholeDevices)
	s.occupy("victim", s.Nodes[0], 0, "p10")
	profile, _ := s.second()
	s.run("job", s.form.all(s.driver), of("p50"))
	s.ending("victim")
	s.run("waits", s.form.unit(s.driver, 1), of("p10"), by(profile))
	s.refusedOrBound("waits")
	s.requireUnbound("waits")
	s.run("top", s.form.unit(s.driver, 2), of("p90"), by(profile))
	s.RequireRunning(t, "top")
	s.RequireRunning(t, "waits")
	require.Equal(t, wellknown.ReasonOutranked, s.record("job").Reason)
	s.requireEvicted("victim")
	s.requireNothingHeld()
}
