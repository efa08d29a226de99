// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// TestWhoWaitsIsTold checks that each gated pod without a condition is queued once to get a condition. Such pods are queued one
// at a time.
func TestWhoWaitsIsTold(t *testing.T) {
	b := newBench()
	b.wait(pod("other", "waits"))
	require.Nil(t, b.try(pod("a", "first"), time.Second, nil))
	require.NotNil(t, b.try(pod("a", "refused"), 0, nil))
	for i := range maxQueuedWithoutShare {
		require.NotNil(t, b.try(pod("a", fmt.Sprint("refused-", i)), 0, nil))
	}
	told := pod("a", "told")
	told.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse}}
	require.True(t, b.Gate(b.request(told, "claim-of-told")))
	const many = 5
	for i := range many {
		require.True(t, b.Gate(b.request(pod("a", fmt.Sprint(i)), "x")))
		require.True(t, b.Gate(b.request(pod("a", fmt.Sprint(i)), "x")), "once more")
	}
	require.True(t, b.Gate(b.request(pod("a", "without claims"))), "it wants extended resources")
	b.Forget(pod("a", "without claims"))
	require.False(t, b.Gate(b.request(pod("b", "of another namespace"), "y")))
	for began := b.clock.Now(); b.clock.Since(began) < reportDelay+2*time.Second; b.pass(10 * time.Millisecond) {
		// Pods of another namespace keep waiting, and namespace a gets no tokens.
		b.CycleBegan("a")
		b.pass(10 * time.Millisecond)
		b.CycleEnded()
		b.wait(pod("other", "waits"))
		before := len(b.activated)
		b.Look()
		require.LessOrEqual(t, len(b.activated)-before, 1)
	}
	require.Equal(t, []string{"a/0", "a/1", "a/2", "a/3", "a/4"}, b.activated)
	for i := range many {
		require.False(t, b.Gate(b.request(pod("a", fmt.Sprint(i)), "x")), "it is queued to be told")
		b.wait(pod("other", "waits"))
		require.NotNil(t, b.try(pod("a", fmt.Sprint(i)), 0, nil))
		require.True(t, b.Gate(b.request(pod("a", fmt.Sprint(i)), "x")), "it waits in line again")
	}
}

// TestDeletedPodsNeedNotBeTold checks that the guard forgets gated pods that were deleted, and pods that were queued to get a
// condition but never tried.
func TestDeletedPodsNeedNotBeTold(t *testing.T) {
	s := newSchedulerBench()
	other := pod("other", "waits")
	s.takesItsShare("a", other)
	require.NotNil(t, s.try(pod("a", "refused"), 0, nil))
	const many = 50
	for i := range many {
		require.True(t, s.Gate(s.requestOf(pod("a", fmt.Sprint(i)))))
	}
	for range 20 {
		s.takesItsShare("a", other)
	}
	for i := range many {
		if i%2 == 0 {
			s.Forget(pod("a", fmt.Sprint(i)))
		}
	}
	for range 600 {
		s.wait()
		s.pass(time.Second)
		s.Look()
	}
	require.Empty(t, s.lines.byNamespace)
	require.Empty(t, s.unreported.pods)
}

// TestPodsWhoseGatesWereRemovedAreTold checks a gated pod whose only condition is about its former scheduling gates. This
// condition does not count, so the pod is stored.
func TestPodsWhoseGatesWereRemovedAreTold(t *testing.T) {
	s := newSchedulerBench()
	s.takesItsShare("a", pod("other", "waits"))
	require.NotNil(t, s.try(pod("a", "refused"), 0, nil))
	p := pod("a", "gates were removed")
	p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonSchedulingGated}}
	require.True(t, s.Gate(s.requestOf(p)))
	require.Contains(t, s.unreported.pods, p.UID)
}

// gated reports whether a pod is gated for another plugin's reason, here a missing claim.
func (b *bench) gated(p *v1.Pod) bool {
	return !b.MustReport(p, "claim is missing", b.request(p).Activate)
}

// TestPodsAreToldAtARate gates 1,000 pods of one namespace. They are queued at a limited rate to get their conditions, and pods
// of other namespaces are queued in between. The pods of all namespaces together have a limit, too.
func TestPodsAreToldAtARate(t *testing.T) {
	b := newBench()
	const many, namespaces = 1000, 40
	for i := range many {
		p := pod("many", fmt.Sprint(i))
		for range 3 {
			require.True(t, b.gated(p))
		}
	}
	tick := func() (told []string) {
		before := len(b.activated)
		b.Look()
		b.pass(10 * time.Millisecond)
		return b.activated[before:]
	}
	for range reportDelay / (10 * time.Millisecond) {
		require.Empty(t, tick())
	}
	for second := range 3 {
		told := 0
		for range 100 {
			told += len(tick())
		}
		require.InDelta(t, 10, told, 1, "second %d", second)
	}
	for i := range namespaces {
		require.True(t, b.gated(pod(fmt.Sprint("other-", i), "p")))
	}
	for range reportDelay / (10 * time.Millisecond) {
		tick()
	}
	others, all := map[string]int{}, 0
	for i := range 3 * 100 {
		for _, name := range tick() {
			if i < 200 {
				all++
			}
			if strings.HasPrefix(name, "other-") {
				others[name]++
			}
		}
	}
	require.Len(t, others, namespaces, "no namespace is starved")
	require.InDelta(t, 40, all, 2, "twenty a second")
	for i := 0; len(b.activated) < many+namespaces; i++ {
		require.Less(t, i, 100*many, "all are told")
		tick()
	}
	// An attempt has written the condition of this pod.
	last := pod("many", fmt.Sprint(many-1))
	require.False(t, b.gated(last))
	b.Failed(last, false)
	last.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Message: "0/8 nodes are available: claim is missing."}}
	require.True(t, b.gated(last))
	require.NotContains(t, b.unreported.pods, last.UID)
	last.Status.Conditions[0].Message = "0/8 nodes are available: 8 other reasons"
	require.True(t, b.gated(last))
	require.Contains(t, b.unreported.pods, last.UID, "it is told why it waits now")
}

// TestGroupsAreToldTogether checks that all pods of a group pass the gate together to get a condition, even if the pod that was
// gated first is deleted.
func TestGroupsAreToldTogether(t *testing.T) {
	b := newBench()
	pods := groupOf("a", 50)
	for _, p := range pods {
		require.True(t, b.gated(p))
	}
	b.Forget(pods[0])
	b.pass(reportDelay)
	b.Look()
	require.Equal(t, []string{"a/0"}, b.activated, "the queue finds the group by each of its pods")
	for _, p := range pods[1:] {
		require.False(t, b.gated(p))
	}
	for _, p := range pods[1:] {
		b.Refused(p)
	}
	require.True(t, b.gated(pods[1]))
}

// TestPodsThatComeAndGoAreNotKept checks that the guard's memory stays bounded while a namespace creates and deletes pods
// behind one pod that stays.
func TestPodsThatComeAndGoAreNotKept(t *testing.T) {
	b := newBench()
	require.True(t, b.gated(pod("a", "stays")))
	for i := range 100_000 {
		p := pod("a", fmt.Sprint(i))
		require.True(t, b.gated(p))
		b.Forget(p)
	}
	require.Len(t, b.unreported.pods, 1)
	require.Less(t, len(b.unreported.byNamespace["a"].order), 2<<10)
	b.pass(reportDelay)
	b.Look()
	require.Equal(t, []string{"a/stays"}, b.activated)
}
