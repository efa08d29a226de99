// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/internal/testing/cases"
)

// recorded returns the hold's pod with the condition that records the hold.
func recorded(t *testing.T, d *desk, hold Hold) *v1.Pod {
	t.Helper()
	condition, err := hold.Condition(d.clock.Now())
	require.NoError(t, err)
	pod := hold.Pod.DeepCopy()
	pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse}, *condition}
	return pod
}

func TestRestoredHoldIsTheSame(t *testing.T) {
	before, after := newDesk(), newDesk()
	hold := before.hold(podOf("a", 5), "1", "2", "3")
	hold.Victims, hold.Frees = []types.UID{"v", "w"}, []types.UID{"claim-v"}
	hold.Claims[0].Devices[1].ShareID = ptr.To(types.UID("share"))
	hold.Claims[0].Devices[1].ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("1Gi")}
	hold.Claims[0].Devices[2].AdminAccess = ptr.To(true)
	hold.Claims = append(hold.Claims, Claim{Name: "<extended>", Devices: []resourceapi.DeviceRequestAllocationResult{deviceOf("4")}})
	hold = before.Begin(hold)
	pod := recorded(t, before, hold)
	restored, err := after.Restore(pod, false, hold.Retry)
	require.NoError(t, err)
	require.True(t, restored)
	again, ok := after.Of("a")
	require.True(t, ok)
	require.Empty(t, cmp.Diff(hold, again, cmpopts.IgnoreFields(Hold{}, "Pod", "Retry")))
	restored, err = after.Restore(pod, false, nil)
	require.NoError(t, err)
	require.False(t, restored, "it is known already")
	recently, _ := after.WasEvicted("a", "v")
	require.False(t, recently, "it is not known whether it was evicted")
	after.clock.Step(time.Minute)
	require.Equal(t, []string{"a timeout"}, after.ended)
}

func TestTriesAreRestored(t *testing.T) {
	before, after := newDesk(), newDesk()
	var ended Ended
	before.Holds = New(before.clock, func(e Ended) { ended = e })
	pod := podOf("a", 5)
	for range 2 {
		before.keep(pod, "1")
		before.End("a", Lost)
	}
	pod.Status.Conditions = []v1.PodCondition{*ended.Condition(before.clock.Now())}
	require.Equal(t, "DevicesLost", pod.Status.Conditions[0].Reason)
	restored, err := after.Restore(pod, false, func() { after.activate(pod) })
	require.NoError(t, err)
	require.False(t, restored)
	count, wait := after.Tries("a")
	require.Equal(t, 2, count)
	require.Equal(t, backOff(2), wait)
	after.clock.Step(wait)
	require.Equal(t, []string{"a"}, after.activated)
	require.Equal(t, 3, after.keep(pod, "1").Try)
}

// TestEndsHaveReasons checks that each value of End has a condition reason. After a final end the message must be empty.
func TestEndsHaveReasons(t *testing.T) {
	for _, how := range Ends {
		condition := (&Ended{How: how}).Condition(time.Unix(0, 0))
		require.NotEmpty(t, condition.Reason, how)
		require.Equal(t, v1.ConditionFalse, condition.Status)
		require.Equal(t, how.isFinal(), condition.Message == "", how)
	}
}

func TestForeignHolds(t *testing.T) {
	d, other := newDesk(), newDesk()
	pod := recorded(t, other, other.keep(podOf("a", 5), "1"))
	restored, err := d.Restore(pod, true, nil)
	require.NoError(t, err)
	require.True(t, restored)
	require.Equal(t, []string{"a"}, d.from("low", 1))
	require.Zero(t, d.Count(), "it counts where it was begun")
	d.End("a", Broken)
	restored, err = d.Restore(pod, true, nil)
	require.NoError(t, err)
	require.False(t, restored, "the condition is changed later")
	other.End("a", Lost)
	restored, err = d.Restore(recorded(t, other, other.keep(podOf("a", 5), "2")), true, nil)
	require.NoError(t, err)
	require.True(t, restored, "it is another try")
}

// TestForeignHoldsOutliveTheBinding checks that a foreign hold lasts some time after its pod is bound. This process may receive
// the binding before the allocation, and other pods must not get the devices meanwhile.
func TestForeignHoldsOutliveTheBinding(t *testing.T) {
	d, other := newDesk(), newDesk()
	bound := recorded(t, other, other.keep(podOf("a", 5), "1"))
	_, err := d.Restore(bound, true, nil)
	require.NoError(t, err)
	bound.Spec.NodeName = "node-1"
	for range 3 {
		d.Observe(bound)
	}
	require.Equal(t, []string{"a"}, d.from("low", 1))
	require.Empty(t, d.activated)
	d.clock.Step(untilKnown)
	require.Empty(t, d.from("low", 1))
	require.Equal(t, []string{"low"}, d.activated)
	require.Equal(t, []string{"a bound"}, d.ended)
}

// TestWhatIsNotRestored checks that Restore ignores pods that need no hold, and rejects conditions that can't be decoded.
func TestWhatIsNotRestored(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1.Pod, *v1.PodCondition)
		err    string
	}{
		"bound":          {change: func(pod *v1.Pod, _ *v1.PodCondition) { pod.Spec.NodeName = "node-1" }},
		"being deleted":  {change: func(pod *v1.Pod, _ *v1.PodCondition) { pod.DeletionTimestamp = &metav1.Time{} }},
		"ended":          {change: func(pod *v1.Pod, _ *v1.PodCondition) { pod.Status.Phase = v1.PodSucceeded }},
		"hold has ended": {change: func(_ *v1.Pod, c *v1.PodCondition) { c.Status, c.Message = v1.ConditionFalse, "" }},
		"another type":   {change: func(_ *v1.Pod, c *v1.PodCondition) { c.Type = "example.com/other" }},
		"empty":          {change: func(_ *v1.Pod, c *v1.PodCondition) { c.Message = "" }, err: "unexpected end"},
		"no JSON":        {change: func(_ *v1.Pod, c *v1.PodCondition) { c.Message = "soon" }, err: "invalid character"},
		"too long":       {change: func(_ *v1.Pod, c *v1.PodCondition) { c.Message = strings.Repeat(" ", maxRecord) + c.Message }, err: "but the limit is 65536"},
		"newer": {change: func(_ *v1.Pod, c *v1.PodCondition) {
			c.Message = strings.Replace(c.Message, `"version":1`, `"version":2`, 1)
		}, err: "version is 2"},
		"no try": {change: func(_ *v1.Pod, c *v1.PodCondition) {
			c.Message = strings.Replace(c.Message, `"try":1`, `"try":0`, 1)
		}, err: "try is 0"},
		"no node": {change: func(_ *v1.Pod, c *v1.PodCondition) {
			c.Message = strings.Replace(c.Message, `"node":"node-1",`, "", 1)
		}, err: "node or claims are missing"},
		"wrong amount": {change: func(_ *v1.Pod, c *v1.PodCondition) {
			c.Message = strings.Replace(c.Message, `"device":"1"`, `"device":"1","consumed":{"m":"x"}`, 1)
		}, err: "quantities must match"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk()
			pod := recorded(t, d, d.keep(podOf("a", 5), "1"))
			again := newDesk()
			tc.change(pod, &pod.Status.Conditions[1])
			restored, err := again.Restore(pod, false, nil)
			require.False(t, restored)
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.err)
			}
			require.Zero(t, again.Count())
		})
	}
	_, err := (&Hold{Pod: podOf("a", 5), Claims: []Claim{{Name: strings.Repeat("x", maxRecord)}}}).Condition(time.Unix(0, 0))
	require.ErrorContains(t, err, "ask for fewer devices")
}

func FuzzReadCondition(f *testing.F) {
	d := newDesk()
	hold := d.keep(podOf("a", 5), "1")
	condition, err := hold.Condition(d.clock.Now())
	require.NoError(f, err)
	f.Add(condition.Message)
	f.Add(`{"version":1,"try":9223372036854775807,"until":"0001-01-01T00:00:00Z"}`)
	f.Fuzz(func(t *testing.T, message string) {
		for _, status := range []v1.ConditionStatus{v1.ConditionTrue, v1.ConditionFalse} {
			d := newDesk()
			pod := podOf("a", 5)
			pod.Status.Conditions = []v1.PodCondition{{Type: wellknown.ConditionDevicesHeld, Status: status, Message: message}}
			if restored, _ := d.Restore(pod, false, nil); restored {
				d.End("a", Lost)
			}
			d.clock.Step(time.Hour)
			_, wait := d.Tries("a")
			require.GreaterOrEqual(t, wait, time.Duration(0))
		}
	})
}

// cluster has the pods stored in the API server, and one scheduler that can be restarted.
type cluster struct {
	*desk
	t    *testing.T
	pods map[string]*v1.Pod
}

func (c *cluster) write(pod types.UID, condition *v1.PodCondition) {
	if stored := c.pods[string(pod)]; stored != nil {
		stored.Status.Conditions = []v1.PodCondition{*condition}
	}
}

func (c *cluster) start() {
	clock := newClock()
	if c.desk != nil {
		clock = c.clock
		clock.timers = nil
	}
	c.desk = &desk{clock: clock}
	c.Holds = New(clock, func(ended Ended) { c.write(ended.Pod.UID, ended.Condition(clock.Now())) })
	for _, name := range slices.Sorted(maps.Keys(c.pods)) {
		_, err := c.Restore(c.pods[name].DeepCopy(), false, func() {})
		require.NoError(c.t, err)
	}
}

// state describes the hold and the tries of each pod.
func (c *cluster) state() map[string]string {
	state := map[string]string{}
	for name := range c.pods {
		held, ok := c.Of(types.UID(name))
		count, wait := c.Tries(types.UID(name))
		state[name] = fmt.Sprint(ok, held.Node, held.Devices(), held.Victims, held.Frees, held.Until.Unix(), count, wait)
		if ok {
			state[name] = fmt.Sprint(ok, held.Node, held.Devices(), held.Victims, held.Frees, held.Until.Unix(), count)
		}
	}
	return state
}

// TestRandomSequences checks random sequences of events. Deleted and bound pods must have no hold, nominations must have no
// effect, and a restarted scheduler must have the same holds and tries.
func TestRandomSequences(t *testing.T) {
	restarts, kept := 0, 0
	for seed := range cases.Of(50, 1000) {
		random := rand.New(rand.NewPCG(uint64(seed), cases.Seed()))
		c := &cluster{t: t, pods: map[string]*v1.Pod{}}
		c.start()
		for step := range 60 {
			name := fmt.Sprint("pod-", random.IntN(5))
			pod := c.pods[name]
			held, ok := c.Of(types.UID(name))
			switch action := random.IntN(12); {
			case pod == nil:
				c.pods[name] = podOf(name, random.Int32N(3))
			case action < 4:
				if _, over := IsOver(pod, ""); over || ok {
					continue
				}
				hold := c.hold(pod.DeepCopy(), fmt.Sprint(random.IntN(6)))
				hold.Until = c.clock.Now().Add(time.Duration(1+random.IntN(60)) * time.Second)
				hold.Victims, hold.Frees = []types.UID{types.UID(fmt.Sprint("victim-", step))}, []types.UID{"claim"}
				hold = c.Begin(hold)
				condition, err := hold.Condition(c.clock.Now())
				require.NoError(t, err)
				c.write(hold.Pod.UID, condition)
				kept++
			case action == 4:
				pod.Status.NominatedNodeName = []string{"", "node-1", "node-2"}[random.IntN(3)]
				c.Observe(pod.DeepCopy())
				after, still := c.Of(types.UID(name))
				require.Equal(t, ok, still)
				require.Equal(t, held.Try, after.Try)
			case action == 5:
				pod.Spec.NodeName = []string{"node-1", "node-2"}[random.IntN(2)]
				c.Observe(pod.DeepCopy())
			case action == 6:
				pod.DeletionTimestamp = &metav1.Time{Time: c.clock.Now()}
				c.Observe(pod.DeepCopy())
			case action == 7:
				delete(c.pods, name)
				c.End(types.UID(name), Deleted)
			case action == 8:
				c.End(types.UID(name), []End{Lost, Broken, TimedOut}[random.IntN(3)])
			case action == 9:
				c.clock.Step(time.Duration(random.IntN(40)) * time.Second)
			default:
				before := c.state()
				c.start()
				require.Equal(t, before, c.state(), "seed %d, step %d", seed, step)
				restarts++
			}
			for name := range c.byPod {
				pod := c.pods[string(name)]
				require.NotNil(t, pod, "a pod that is gone, seed %d, step %d", seed, step)
				_, over := IsOver(pod, "")
				require.False(t, over, "seed %d, step %d", seed, step)
			}
			for _, pod := range c.pods {
				condition, held := ConditionOf(pod), false
				if condition != nil {
					_, held = c.byPod[pod.UID]
					require.Equal(t, held, condition.Status == v1.ConditionTrue, "what is recorded is held, seed %d, step %d", seed, step)
				}
			}
		}
	}
	require.Positive(t, restarts)
	require.Positive(t, kept)
}
