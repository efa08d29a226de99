// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func podOf(name string, priority int32) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1.PodSpec{Priority: &priority}}
}

func deviceOf(name string) resourceapi.DeviceRequestAllocationResult {
	return resourceapi.DeviceRequestAllocationResult{Driver: "d", Pool: "p", Device: name}
}

// desk has holds, and how they ended.
type desk struct {
	*Holds
	clock     *clocktesting.FakeClock
	ended     []string
	activated []string
}

func newDesk() *desk {
	d := &desk{clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	d.Holds = New(d.clock, func(hold Hold, how End) { d.ended = append(d.ended, fmt.Sprintf("%s %s", hold.Pod.Name, how)) })
	return d
}

func (d *desk) keep(pod *v1.Pod, devices ...string) {
	hold := Hold{Pod: pod, Node: "node-1", Timeout: time.Minute}
	for _, device := range devices {
		hold.Devices = append(hold.Devices, deviceOf(device))
	}
	d.Keep(hold)
}

// from are the pods for which devices are kept from one of a priority.
func (d *desk) from(name string, priority int32) (holders []string) {
	for _, hold := range d.From(podOf(name, priority), func(pod *v1.Pod) { d.activated = append(d.activated, pod.Name) }) {
		holders = append(holders, hold.Pod.Name)
	}
	return holders
}

func TestFromWhom(t *testing.T) {
	d := newDesk()
	d.keep(podOf("b", 5), "1")
	d.keep(podOf("a", 7), "2")
	require.Equal(t, []string{"a", "b"}, d.from("low", 1))
	require.Equal(t, []string{"a", "b"}, d.from("equal", 5))
	require.Equal(t, []string{"a"}, d.from("b", 5), "its own it may take")
	require.Equal(t, []string{"a"}, d.from("higher", 6))
	require.Empty(t, d.from("top", 8))
	require.Equal(t, 2, d.Count())
}

func TestTimeIsOver(t *testing.T) {
	d := newDesk()
	d.keep(podOf("a", 5), "1")
	_ = d.from("waits", 1)
	d.clock.Step(time.Minute - 1)
	require.Empty(t, d.ended)
	d.clock.Step(1)
	require.Equal(t, []string{"a timeout"}, d.ended)
	require.Equal(t, []string{"waits"}, d.activated)
	require.Empty(t, d.from("waits", 1))
	d.End("a", Deleted)
	require.Len(t, d.ended, 1, "it ends once")
}

func TestNewHoldReplacesTheFormer(t *testing.T) {
	d := newDesk()
	d.keep(podOf("a", 5), "1")
	d.keep(podOf("a", 5), "2")
	require.Equal(t, []string{"a renominated"}, d.ended)
	hold, ok := d.Of("a")
	require.True(t, ok)
	require.Equal(t, "2", hold.Devices[0].Device)
	d.clock.Step(time.Minute)
	require.Equal(t, []string{"a renominated", "a timeout"}, d.ended)
}

func TestTakenBreaksWhatOverlaps(t *testing.T) {
	d := newDesk()
	d.keep(podOf("a", 5), "1", "2")
	d.keep(podOf("b", 5), "3")
	shared := Hold{Pod: podOf("c", 5), Node: "node-1", Timeout: time.Minute, Devices: []resourceapi.DeviceRequestAllocationResult{deviceOf("1")}}
	shared.Devices[0].ShareID = ptr.To(types.UID("share"))
	d.Keep(shared)
	d.Taken(podOf("a", 5), []structured.DeviceID{structured.MakeDeviceID("d", "p", "1")})
	require.Empty(t, d.ended, "it is its own")
	d.Taken(podOf("top", 9), []structured.DeviceID{structured.MakeDeviceID("d", "p", "2"), structured.MakeDeviceID("d", "q", "3")})
	require.Equal(t, []string{"a broken"}, d.ended)
	require.Equal(t, 2, d.Count())
}

func TestWhatBecomesOfThePod(t *testing.T) {
	nominated := func(to string) *v1.Pod {
		pod := podOf("a", 5)
		pod.Status.NominatedNodeName = to
		return pod
	}
	bound := func(to string) *v1.Pod {
		pod := podOf("a", 5)
		pod.Spec.NodeName = to
		return pod
	}
	for name, tc := range map[string]struct {
		before, after *v1.Pod
		want          []string
	}{
		"not nominated yet":      {before: nominated(""), after: nominated("")},
		"nominated":              {before: nominated(""), after: nominated("node-1")},
		"nominated elsewhere":    {before: nominated("node-1"), after: nominated("node-2"), want: []string{"a renominated"}},
		"nominated no more":      {before: nominated("node-1"), after: nominated(""), want: []string{"a renominated"}},
		"nominated before":       {before: nominated("node-2"), after: nominated("node-2"), want: []string{"a renominated"}},
		"unknown before":         {after: nominated("")},
		"bound":                  {before: nominated("node-1"), after: bound("node-1"), want: []string{"a bound"}},
		"bound elsewhere":        {before: nominated("node-1"), after: bound("node-2"), want: []string{"a renominated"}},
		"another pod of no hold": {after: podOf("b", 5)},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk()
			d.keep(podOf("a", 5), "1")
			d.Observe(tc.before, tc.after)
			require.Equal(t, tc.want, d.ended)
		})
	}
}

// TestWaitingIsBounded: pods cost memory for as long as a hold lasts.
func TestWaitingIsBounded(t *testing.T) {
	d := newDesk()
	d.keep(podOf("a", 5), "1")
	for i := range maxWaiting + 10 {
		_ = d.from(fmt.Sprint("waits-", i), 1)
		_ = d.from("waits-0", 1)
	}
	d.End("a", Deleted)
	require.Len(t, d.activated, maxWaiting)
}

// TestVictimsThatNobodyKnowsToEnd: for a while they count as ending, and then their pod is tried again.
func TestVictimsThatNobodyKnowsToEnd(t *testing.T) {
	d := newDesk()
	retried := 0
	d.Keep(Hold{Pod: podOf("a", 5), Node: "node-1", Timeout: time.Hour, Victims: []types.UID{"victim"}, Retry: func() { retried++ }})
	require.True(t, d.IsVictim("a", "victim"))
	require.False(t, d.IsVictim("a", "other"))
	require.False(t, d.IsVictim("b", "victim"))
	d.clock.Step(untilKnown - 1)
	require.Zero(t, retried)
	d.clock.Step(1)
	require.False(t, d.IsVictim("a", "victim"))
	require.Equal(t, 1, retried)

	d.Keep(Hold{Pod: podOf("a", 5), Node: "node-1", Timeout: time.Hour, Retry: func() { retried++ }})
	d.End("a", Bound)
	d.clock.Step(time.Hour)
	require.Equal(t, 1, retried)
}

// TestFreeIsNotedOnce for each hold.
func TestFreeIsNotedOnce(t *testing.T) {
	d := newDesk()
	d.keep(podOf("a", 5), "1")
	require.False(t, d.NoteFree("a"))
	require.True(t, d.NoteFree("a"))
	d.keep(podOf("a", 5), "2")
	require.False(t, d.NoteFree("a"))
	require.True(t, d.NoteFree("b"), "it has none")
}
