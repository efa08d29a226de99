// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/apis/wellknown"
)

// scheduler is one of several schedulers. It writes the conditions of its own pods, and reads other pods' conditions later.
type scheduler struct {
	*Holds
	number int
	// unread has the versions of pods that the scheduler's watch has not delivered yet.
	unread []*v1.Pod
}

// schedulers is a set of schedulers that share one clock and one API server.
type schedulers struct {
	t     require.TestingT
	clock *stepClock
	all   []*scheduler
	// pods is the content of the API server. of maps each pod to its scheduler.
	pods map[types.UID]*v1.Pod
	of   map[types.UID]*scheduler
}

func newSchedulers(t require.TestingT, n int) *schedulers {
	s := &schedulers{t: t, clock: newClock(), pods: map[types.UID]*v1.Pod{}, of: map[types.UID]*scheduler{}}
	for i := range n {
		one := &scheduler{number: i}
		one.Holds = New(s.clock, func(ended Ended) {
			if !ended.Foreign {
				s.write(one, ended.Pod, ended.Condition(s.clock.Now()))
			}
		})
		s.all = append(s.all, one)
	}
	return s
}

// write stores a condition on behalf of one scheduler. All other schedulers read it later.
func (s *schedulers) write(by *scheduler, pod *v1.Pod, condition *v1.PodCondition) {
	stored := pod.DeepCopy()
	stored.Status.Conditions = []v1.PodCondition{*condition}
	s.pods[pod.UID], s.of[pod.UID] = stored, by
	for _, other := range s.all {
		if other != by {
			other.unread = append(other.unread, stored)
		}
	}
}

// keep begins a hold of one scheduler. If the hold has not ended at once, it also writes the condition.
func (s *schedulers) keep(by *scheduler, hold Hold) {
	kept := by.Begin(hold)
	if _, ok := by.Of(hold.Pod.UID); !ok {
		return
	}
	condition, err := kept.Condition(s.clock.Now())
	require.NoError(s.t, err)
	s.write(by, hold.Pod, condition)
}

// read delivers the oldest unread version of a pod to a scheduler.
func (s *schedulers) read(by *scheduler) {
	if len(by.unread) == 0 {
		return
	}
	pod := by.unread[0]
	by.unread = by.unread[1:]
	if ConditionOf(pod).Status == v1.ConditionTrue {
		_, err := by.Restore(pod, true, nil)
		require.NoError(s.t, err)
		return
	}
	by.End(pod.UID, Lost)
}

func (s *schedulers) readAll() {
	for changed := true; changed; {
		changed = false
		for _, one := range s.all {
			for len(one.unread) > 0 {
				s.read(one)
				changed = true
			}
		}
	}
}

// mayGet returns the pods that hold the device and that, according to their own schedulers, may get it.
func (s *schedulers) mayGet(device string) (pods []types.UID) {
	for uid, by := range s.of {
		own, ok := by.Of(uid)
		if !ok || !own.hasAny(wholeDevices([]resourceapi.DeviceRequestAllocationResult{deviceOf(device)})) {
			continue
		}
		isKept := false
		for _, from := range by.From(own.Pod, nil, func(*v1.Pod) {}) {
			isKept = isKept || from.hasAny(wholeDevices([]resourceapi.DeviceRequestAllocationResult{deviceOf(device)}))
		}
		if !isKept {
			pods = append(pods, uid)
		}
	}
	return pods
}

// TestEqualHoldsOfTwoSchedulers begins competing holds in two schedulers before either scheduler reads the other's hold. Only
// the hold that precedes must remain.
func TestEqualHoldsOfTwoSchedulers(t *testing.T) {
	for name, test := range map[string]struct {
		priorities [2]int32
		names      [2]string
		between    time.Duration
		stays      int
	}{
		"the first one":                      {priorities: [2]int32{5, 5}, names: [2]string{"b", "a"}, between: time.Millisecond, stays: 0},
		"at the same time the lower UID":     {priorities: [2]int32{5, 5}, names: [2]string{"b", "a"}, stays: 1},
		"the higher priority if it is later": {priorities: [2]int32{5, 6}, names: [2]string{"a", "b"}, between: time.Second, stays: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSchedulers(t, 2)
			var pods []*v1.Pod
			for i, one := range s.all {
				pods = append(pods, podOf(test.names[i], test.priorities[i]))
				s.keep(one, Hold{Pod: pods[i], Node: "node-1", Until: s.clock.Now().Add(time.Minute), Claims: []Claim{claimOf(test.names[i], "1", test.names[i])}})
				s.clock.Step(test.between)
			}
			s.read(s.all[0])
			s.read(s.all[1])
			require.Equal(t, []types.UID{pods[test.stays].UID}, s.mayGet("1"))
			loser := s.pods[pods[1-test.stays].UID]
			require.Equal(t, wellknown.ReasonOutranked, ConditionOf(loser).Reason)
			count, _ := s.all[1-test.stays].Tries(loser.UID)
			require.Zero(t, count, "nobody was evicted, so it was no try")

			// The winner has not read the end of the loser's hold yet, so the loser's other device stays reserved.
			winner := s.all[test.stays]
			require.Len(t, winner.From(podOf("third", 1), nil, func(*v1.Pod) {}), 2)
			s.readAll()
			require.Len(t, winner.From(podOf("third", 1), nil, func(*v1.Pod) {}), 1)
		})
	}
}

// TestHoldsCompeteForVictims checks that holds with a common victim or claim compete. Shares of one device have no names, so
// the devices alone would not show the conflict.
func TestHoldsCompeteForVictims(t *testing.T) {
	a, b := Hold{Victims: []types.UID{"1", "2"}}, Hold{Victims: []types.UID{"2"}}
	require.True(t, a.competes(&b))
	require.False(t, a.competes(&Hold{Victims: []types.UID{"3"}, Frees: []types.UID{"1"}}))
	require.True(t, (&Hold{Frees: []types.UID{"1"}}).competes(&Hold{Frees: []types.UID{"1"}}))
}

// TestAnotherSchedulerAllocates checks that a hold ends if a foreign claim gets its device. The hold stays if the claim belongs
// to the pod of the hold or to a victim. If the foreign pod has a higher priority, the hold ends as broken, otherwise as lost.
func TestAnotherSchedulerAllocates(t *testing.T) {
	claim := func(name, device string) *resourceapi.ResourceClaim {
		c := &resourceapi.ResourceClaim{Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{}}}
		c.Name, c.UID = name, types.UID(name)
		c.Status.Allocation.Devices.Results = []resourceapi.DeviceRequestAllocationResult{deviceOf(device)}
		return c
	}
	d := newDesk()
	held := d.hold(podOf("a", 5), "1", "2")
	held.Frees = []types.UID{"victim"}
	d.Begin(held)
	d.Allocated(claim("claim-a", "1"), 9)
	d.Allocated(claim("victim", "1"), 9)
	d.Allocated(claim("other", "3"), 9)
	extended := claim("extended", "2")
	extended.OwnerReferences = []metav1.OwnerReference{{UID: held.Pod.UID, Controller: ptr.To(true)}}
	d.Allocated(extended, 5)
	require.Empty(t, d.ended)
	d.Allocated(claim("other", "2"), 6)
	require.Equal(t, []string{"a broken"}, d.ended)
	d.Begin(held)
	d.Allocated(claim("other", "2"), 5)
	require.Equal(t, []string{"a broken", "a lost"}, d.ended)
}

// TestUnused checks that the pod of a hold is retried when a claim that must be freed for it has lost a user.
func TestUnused(t *testing.T) {
	d, tried := newDesk(), 0
	held := d.hold(podOf("a", 5), "1")
	held.Frees, held.Retry = []types.UID{"victim"}, func() { tried++ }
	d.Begin(held)
	d.Unused("other")
	require.Zero(t, tried)
	d.Unused("victim")
	require.Equal(t, 1, tried)
}

// TestSchedulersAgree lets schedulers begin holds in any order and read records late. In the end at most one pod may get each
// device, and the hold that precedes all others on the device remains.
func TestSchedulersAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSchedulers(t, 3)
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			by := s.all[rapid.IntRange(0, len(s.all)-1).Draw(t, "scheduler")]
			if rapid.Bool().Draw(t, "reads") {
				s.read(by)
				continue
			}
			pod := podOf(fmt.Sprint("pod-", rapid.IntRange(0, 5).Draw(t, "pod"), "-", by.number), rapid.Int32Range(1, 2).Draw(t, "priority"))
			if _, held := by.Of(pod.UID); held {
				continue
			}
			device := fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "device"))
			isKept := false
			for _, from := range by.From(pod, nil, func(*v1.Pod) {}) {
				isKept = isKept || from.Devices()[0].Device == device
			}
			if !isKept {
				s.keep(by, Hold{Pod: pod, Node: "node-1", Until: s.clock.Now().Add(time.Hour), Claims: []Claim{claimOf(pod.Name, device)}})
				s.clock.Step(time.Duration(i%2) * time.Millisecond)
			}
		}
		s.readAll()
		for _, device := range []string{"0", "1", "2", "3"} {
			held := 0
			for uid, by := range s.of {
				if own, ok := by.Of(uid); ok && own.Devices()[0].Device == device {
					held++
				}
			}
			may := s.mayGet(device)
			require.LessOrEqual(t, held, 1)
			require.Len(t, may, held, "device %s", device)
		}
	})
}
