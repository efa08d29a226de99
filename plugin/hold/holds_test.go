// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stepClock is a fake clock that calls due timers without a lock, so that the called functions may use the clock.
type stepClock struct {
	*clocktesting.FakeClock
	mutex  sync.Mutex
	timers []*stepTimer
}

type stepTimer struct {
	clock.Timer
	of  *stepClock
	due time.Time
	do  func()
}

func newClock() *stepClock { return &stepClock{FakeClock: clocktesting.NewFakeClock(time.Unix(0, 0))} }

func (c *stepClock) AfterFunc(d time.Duration, do func()) clock.Timer {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	timer := &stepTimer{of: c, due: c.Now().Add(d), do: do}
	c.timers = append(c.timers, timer)
	return timer
}

func (t *stepTimer) Stop() bool {
	t.of.mutex.Lock()
	defer t.of.mutex.Unlock()
	at := slices.Index(t.of.timers, t)
	if at < 0 {
		return false
	}
	t.of.timers = slices.Delete(t.of.timers, at, at+1)
	return true
}

// Step advances the clock from one due timer to the next.
func (c *stepClock) Step(d time.Duration) {
	end := c.Now().Add(d)
	for {
		c.mutex.Lock()
		var next *stepTimer
		for _, timer := range c.timers {
			if !timer.due.After(end) && (next == nil || timer.due.Before(next.due)) {
				next = timer
			}
		}
		c.mutex.Unlock()
		if next == nil {
			c.SetTime(end)
			return
		}
		next.Stop()
		c.SetTime(next.due)
		next.do()
	}
}

func podOf(name string, priority int32) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1.PodSpec{Priority: &priority}}
}

func deviceOf(name string) resourceapi.DeviceRequestAllocationResult {
	return resourceapi.DeviceRequestAllocationResult{Driver: "d", Pool: "p", Device: name}
}

// claimOf returns the claim that the pod with this name uses.
func claimOf(pod string, devices ...string) Claim {
	claim := Claim{UID: types.UID("claim-" + pod), Name: pod}
	for _, device := range devices {
		claim.Devices = append(claim.Devices, deviceOf(device))
	}
	return claim
}

// desk is a Holds under test. It records which holds ended and which pods were activated.
type desk struct {
	*Holds
	clock     *stepClock
	ended     []string
	activated []string
}

func newDesk() *desk {
	d := &desk{clock: newClock()}
	d.Holds = New(d.clock, func(ended Ended) { d.ended = append(d.ended, fmt.Sprintf("%s %s", ended.Pod.Name, ended.How)) })
	return d
}

func (d *desk) hold(pod *v1.Pod, devices ...string) Hold {
	return Hold{
		Pod: pod, Node: "node-1", Until: d.clock.Now().Add(time.Minute), Claims: []Claim{claimOf(pod.Name, devices...)},
		Retry: func() { d.activated = append(d.activated, pod.Name) },
	}
}

func (d *desk) keep(pod *v1.Pod, devices ...string) Hold { return d.Begin(d.hold(pod, devices...)) }

func (d *desk) activate(pod *v1.Pod) { d.activated = append(d.activated, pod.Name) }

// from returns the names of the pods whose held devices a pod of this priority must not get.
func (d *desk) from(name string, priority int32, claims ...types.UID) (holders []string) {
	for _, hold := range d.From(podOf(name, priority), claims, d.activate) {
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
	require.Equal(t, []string{"a"}, d.from("partner", 1, "claim-b"), "a pod of the same claim may allocate it")
	require.Equal(t, 2, d.Count())
}

func TestTimeIsOver(t *testing.T) {
	d := newDesk()
	d.keep(podOf("a", 5), "1")
	_ = d.from("waits", 1)
	d.clock.Step(untilKnown)
	require.Equal(t, []string{"a"}, d.activated, "in case that victims turn out not to be ending")
	d.clock.Step(time.Minute - untilKnown - 1)
	require.Empty(t, d.ended)
	d.clock.Step(1)
	require.Equal(t, []string{"a timeout"}, d.ended)
	require.Equal(t, []string{"a", "waits"}, d.activated)
	require.Empty(t, d.from("waits", 1))
	d.End("a", Deleted)
	require.Len(t, d.ended, 1, "it ends once")
}

func TestHoldGoesOnWithOtherDevices(t *testing.T) {
	d := newDesk()
	require.Equal(t, 1, d.keep(podOf("a", 5), "1").Try)
	d.Evicted("a", "victim", false)
	_ = d.from("waits", 1)
	d.clock.Step(time.Second)
	require.Equal(t, 1, d.keep(podOf("a", 5), "2").Try)
	require.Empty(t, d.ended)
	require.Equal(t, []string{"waits"}, d.activated, "device 1 is free for others")
	recently, _ := d.WasEvicted("a", "victim")
	require.True(t, recently)
	hold, ok := d.Of("a")
	require.True(t, ok)
	require.Equal(t, "2", hold.Devices()[0].Device)
	d.clock.Step(time.Minute - 1)
	require.Empty(t, d.ended, "the former time doesn't count")
	d.clock.Step(1)
	require.Equal(t, []string{"a timeout"}, d.ended)
}

func TestTakenBreaksWhatOverlaps(t *testing.T) {
	d := newDesk()
	d.keep(podOf("a", 5), "1", "2")
	d.keep(podOf("b", 5), "3")
	shared := d.hold(podOf("c", 5), "1")
	shared.Claims[0].Devices[0].ShareID = ptr.To(types.UID("share"))
	shared.Frees = []types.UID{"claim-victim"}
	d.Begin(shared)
	id := func(device string) structured.DeviceID { return structured.MakeDeviceID("d", "p", device) }
	d.Taken(podOf("a", 5), []structured.DeviceID{id("1")}, nil)
	require.Empty(t, d.ended, "it is its own")
	d.Taken(podOf("partner", 9), []structured.DeviceID{id("1"), id("2")}, []types.UID{"claim-a"})
	require.Empty(t, d.ended, "the devices are held for its claim")
	d.Taken(podOf("top", 9), []structured.DeviceID{id("2"), structured.MakeDeviceID("d", "q", "3")}, nil)
	require.Equal(t, []string{"a broken"}, d.ended)
	d.Taken(podOf("top", 9), nil, []types.UID{"claim-victim"})
	require.Equal(t, []string{"a broken", "c broken"}, d.ended)
	require.Equal(t, 1, d.Count())
}

// TestHigherHoldBreaksLower checks that a new hold breaks lower-priority holds, but only holds on the same devices.
func TestHigherHoldBreaksLower(t *testing.T) {
	d := newDesk()
	d.keep(podOf("low", 5), "1")
	d.keep(podOf("other", 5), "2")
	d.keep(podOf("equal", 5), "1")
	require.Empty(t, d.ended)
	d.keep(podOf("high", 6), "1")
	require.ElementsMatch(t, []string{"low broken", "equal broken"}, d.ended)
}

func TestWhatBecomesOfThePod(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1.Pod)
		want   []string
	}{
		"nominated":            {change: func(pod *v1.Pod) { pod.Status.NominatedNodeName = "node-1" }},
		"nominated elsewhere":  {change: func(pod *v1.Pod) { pod.Status.NominatedNodeName = "node-2" }},
		"nominated no more":    {change: func(*v1.Pod) {}},
		"bound":                {change: func(pod *v1.Pod) { pod.Spec.NodeName = "node-1" }, want: []string{"a bound"}},
		"bound elsewhere":      {change: func(pod *v1.Pod) { pod.Spec.NodeName = "node-2" }, want: []string{"a moved"}},
		"being deleted":        {change: func(pod *v1.Pod) { pod.DeletionTimestamp = &metav1.Time{} }, want: []string{"a deleted"}},
		"failed":               {change: func(pod *v1.Pod) { pod.Status.Phase = v1.PodFailed }, want: []string{"a deleted"}},
		"another pod, no hold": {change: func(pod *v1.Pod) { pod.UID, pod.Spec.NodeName = "b", "node-1" }},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk()
			d.keep(podOf("a", 5), "1")
			after := podOf("a", 5)
			tc.change(after)
			d.Observe(after)
			require.Equal(t, tc.want, d.ended)
			count, _ := d.Tries("a")
			require.Equal(t, tc.want == nil, count == 1, "no try follows")
		})
	}
}

func TestClaimGone(t *testing.T) {
	d := newDesk()
	d.keep(podOf("a", 5), "1")
	extended := d.hold(podOf("b", 5), "2")
	extended.Claims[0].UID = ""
	d.Begin(extended)
	d.ClaimGone("claim-c")
	d.ClaimGone("")
	require.Empty(t, d.ended)
	d.ClaimGone("claim-a")
	require.Equal(t, []string{"a claim_deleted"}, d.ended)
}

// TestWaitingIsBounded checks that a hold stores at most maxWaiting pods, because they use memory until the hold ends.
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

// TestRefusesThoseThatJoin checks that Refuses refuses a pod that would start to use a claim that must be freed.
func TestRefusesThoseThatJoin(t *testing.T) {
	allocated := func(name string, devices ...string) *resourceapi.ResourceClaim {
		claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("claim-" + name)}}
		claim.Status.Allocation = &resourceapi.AllocationResult{}
		claim.Status.Allocation.Devices.Results = claimOf(name, devices...).Devices
		return claim
	}
	free := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "victim", UID: "claim-victim"}}
	shared := allocated("shared", "1")
	shared.Status.Allocation.Devices.Results[0].ShareID = ptr.To(types.UID("share"))
	for name, tc := range map[string]struct {
		pod   *v1.Pod
		claim *resourceapi.ResourceClaim
		want  bool
	}{
		"to be freed":               {pod: podOf("joins", 1), claim: allocated("victim", "9"), want: true},
		"of the same priority":      {pod: podOf("joins", 5), claim: allocated("victim", "9"), want: true},
		"of a higher priority":      {pod: podOf("joins", 6), claim: allocated("victim", "9")},
		"the preemptor":             {pod: podOf("a", 5), claim: allocated("victim", "9")},
		"freed already":             {pod: podOf("joins", 1), claim: free},
		"has a device that is held": {pod: podOf("joins", 1), claim: allocated("other", "1"), want: true},
		"has a share of it":         {pod: podOf("joins", 1), claim: shared},
		"has another device":        {pod: podOf("joins", 1), claim: allocated("other", "2")},
		"the preemptor's claim":     {pod: podOf("joins", 1), claim: allocated("a", "1")},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk()
			hold := d.hold(podOf("a", 5), "1")
			hold.Frees = []types.UID{"claim-victim"}
			d.Begin(hold)
			refused := d.Refuses(tc.pod, []*resourceapi.ResourceClaim{allocated("unrelated", "5"), tc.claim}, d.activate)
			d.End("a", Bound)
			if !tc.want {
				require.Nil(t, refused)
				require.Empty(t, d.activated)
				return
			}
			require.Same(t, tc.claim, refused)
			require.Equal(t, []string{"joins"}, d.activated)
		})
	}
}

// TestPromisedTo checks that each victim is mapped to the highest priority of the pods that it is evicted for.
func TestPromisedTo(t *testing.T) {
	d := newDesk()
	for name, priority := range map[string]int32{"low": 3, "middle": 5, "high": 7} {
		hold := d.hold(podOf(name, priority), name)
		hold.Victims = []types.UID{"victim", types.UID("victim-" + name)}
		d.Begin(hold)
	}
	require.Equal(t, map[types.UID]int32{"victim": 5, "victim-low": 3, "victim-middle": 5}, d.PromisedTo(podOf("another", 7)))
	require.Empty(t, d.PromisedTo(podOf("least", 3)))
}

// TestHoldForAClaim checks that For returns the hold of another pod of the claim.
func TestHoldForAClaim(t *testing.T) {
	d := newDesk()
	d.keep(podOf("a", 5), "1")
	_, ok := d.For(podOf("a", 5), []types.UID{"claim-a"}, d.activate)
	require.False(t, ok)
	_, ok = d.For(podOf("b", 9), []types.UID{"claim-b", ""}, d.activate)
	require.False(t, ok)
	hold, ok := d.For(podOf("b", 9), []types.UID{"claim-b", "claim-a"}, d.activate)
	require.True(t, ok)
	require.Equal(t, "a", hold.Pod.Name)
	d.End("a", Bound)
	require.Equal(t, []string{"b"}, d.activated)
}

// TestHoldIsHandedOver checks that a hold continues when its pod is deleted. It is passed to the pod of the claim that has the
// highest priority.
func TestHoldIsHandedOver(t *testing.T) {
	d := newDesk()
	var heirs []string
	d.Holds = New(d.clock, func(ended Ended) {
		heir := ""
		if ended.Heir != nil {
			heir = ended.Heir.Pod.Name
		}
		heirs = append(heirs, heir)
	})
	d.keep(podOf("a", 5), "1")
	d.Evicted("a", "victim", false)
	for _, pod := range []*v1.Pod{podOf("b", 5), podOf("c", 7), podOf("d", 9)} {
		claims := []types.UID{"claim-a", "claim-other"}
		if pod.Name == "d" {
			claims = []types.UID{"claim-other"}
		}
		_, ok := d.For(pod, claims, d.activate)
		require.Equal(t, pod.Name != "d", ok)
	}
	require.Equal(t, []string{"a"}, d.from("thief", 5))

	d.End("a", Deleted)
	require.Equal(t, []string{"c"}, heirs)
	require.Equal(t, []string{"c"}, d.from("thief", 5), "the devices were never free")
	inherited, ok := d.Of("c")
	require.True(t, ok)
	require.Equal(t, []Claim{claimOf("a", "1")}, inherited.Claims)
	require.Equal(t, 1, inherited.Try)
	recently, _ := d.WasEvicted("c", "victim")
	require.True(t, recently)
	slices.Sort(d.activated)
	require.Equal(t, []string{"b", "c", "thief"}, d.activated)
	_, ok = d.For(podOf("b", 5), []types.UID{"claim-a"}, d.activate)
	require.True(t, ok, "it waits for the heir now")

	d.End("c", Deleted)
	d.End("b", Bound)
	require.Equal(t, []string{"c", "b", ""}, heirs)
	require.Zero(t, d.Count())

	d.keep(podOf("a", 5), "1")
	_, _ = d.For(podOf("b", 5), []types.UID{"claim-a"}, d.activate)
	d.End("a", Lost)
	require.Empty(t, heirs[3], "only what still will come is handed over")
	d.clock.Step(time.Hour)
	require.Zero(t, d.Count())
}

// TestInheritedHoldTimesOut checks that a hold keeps its deadline when another pod inherits it.
func TestInheritedHoldTimesOut(t *testing.T) {
	d := newDesk()
	d.keep(podOf("a", 5), "1")
	_, _ = d.For(podOf("b", 5), []types.UID{"claim-a"}, d.activate)
	d.clock.Step(40 * time.Second)
	d.End("a", Deleted)
	d.clock.Step(19 * time.Second)
	require.Equal(t, 1, d.Count())
	d.clock.Step(2 * time.Second)
	require.Zero(t, d.Count())
	require.Equal(t, []string{"a deleted", "b timeout"}, d.ended)
}
