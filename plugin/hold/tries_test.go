// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestTriesAreBounded checks that the back-off doubles after each try, and that no try follows the last one.
func TestTriesAreBounded(t *testing.T) {
	d := newDesk()
	pod := podOf("a", 5)
	before := time.Duration(0)
	for try := 1; try <= MaxTries; try++ {
		require.Equal(t, try, d.keep(pod, "1").Try)
		d.End("a", Lost)
		count, wait := d.Tries("a")
		require.Equal(t, try, count)
		if try > 1 {
			require.Equal(t, 2*before, wait)
		}
		before, d.activated = wait, nil
		d.clock.Step(wait - 1)
		require.Empty(t, d.activated)
		d.clock.Step(1)
		if try < MaxTries {
			require.Equal(t, []string{"a"}, d.activated)
		} else {
			require.Empty(t, d.activated, "no try follows")
		}
		_, wait = d.Tries("a")
		require.Zero(t, wait)
	}
	d.End("a", Deleted)
	count, _ := d.Tries("a")
	require.Zero(t, count)
}

// TestUnrecordedHoldsAreNoTries checks that holds that could not be recorded don't count as tries, because no pod was evicted
// for them. The next hold still waits for a back-off.
func TestUnrecordedHoldsAreNoTries(t *testing.T) {
	d := newDesk()
	var ended Ended
	d.Holds = New(d.clock, func(e Ended) { ended = e })
	for range MaxTries + 1 {
		require.Equal(t, 1, d.keep(podOf("a", 5), "1").Try)
		d.End("a", Unrecorded)
		count, wait := d.Tries("a")
		require.Zero(t, count)
		require.Equal(t, firstBackOff, wait)
	}
	pod := podOf("a", 5)
	pod.Status.Conditions = []v1.PodCondition{*ended.Condition(d.clock.Now())}
	again := newDesk()
	_, err := again.Restore(pod, false, nil)
	require.NoError(t, err)
	count, wait := again.Tries("a")
	require.Zero(t, count)
	require.Equal(t, firstBackOff, wait)
}

// TestVictimsThatInformersDontKnow checks that WasEvicted reports a recent eviction until informers must have delivered it.
func TestVictimsThatInformersDontKnow(t *testing.T) {
	d := newDesk()
	hold := d.hold(podOf("a", 5), "1")
	hold.Until = d.clock.Now().Add(time.Hour)
	hold.Victims = []types.UID{"victim", "waiting", "other"}
	d.Begin(hold)
	d.Evicted("a", "victim", false)
	d.Evicted("a", "waiting", true)
	is := func(victim types.UID, recently, inMemory bool) {
		t.Helper()
		r, m := d.WasEvicted("a", victim)
		require.Equal(t, [2]bool{recently, inMemory}, [2]bool{r, m})
	}
	is("victim", true, false)
	is("waiting", true, true)
	is("other", false, false)
	d.clock.Step(untilKnown - 1)
	require.Empty(t, d.activated)
	is("victim", true, false)
	d.clock.Step(1)
	is("victim", false, false)
	is("waiting", false, true)
	require.Equal(t, []string{"a"}, d.activated)
	d.End("a", Bound)
	is("victim", false, false)
	d.clock.Step(time.Hour)
	require.Len(t, d.activated, 1)
}

// TestFreeIsNotedOnce checks that NoteFree returns false only once for each hold.
func TestFreeIsNotedOnce(t *testing.T) {
	d := newDesk()
	d.keep(podOf("a", 5), "1")
	require.False(t, d.NoteFree("a"))
	require.True(t, d.NoteFree("a"))
	d.keep(podOf("a", 5), "2")
	require.False(t, d.NoteFree("a"))
	require.True(t, d.NoteFree("b"), "it has none")
}

// TestFailedEvictionsAreRepeatedEverLessOften checks that MayResume waits longer after each repetition, and that the pod is
// activated when the wait is over.
func TestFailedEvictionsAreRepeatedEverLessOften(t *testing.T) {
	d := newDesk()
	hold := d.hold(podOf("a", 5), "1")
	hold.Until = d.clock.Now().Add(time.Hour)
	d.Begin(hold)
	require.True(t, d.MayResume("a"))
	for wait := firstResume; wait < lastResume; wait *= 2 {
		d.activated = nil
		require.False(t, d.MayResume("a"))
		d.clock.Step(wait - 1)
		require.Empty(t, d.activated)
		require.False(t, d.MayResume("a"))
		d.clock.Step(1)
		require.Equal(t, []string{"a"}, d.activated)
		require.True(t, d.MayResume("a"))
		d.Begin(hold)
	}
	require.False(t, d.MayResume("b"))
}
