// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	compbase "k8s.io/component-base/metrics"
	"k8s.io/klog/v2/ktesting"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/fragmentation"
	"github.com/celset/celset/internal/testing/plugintest"
	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/metrics"
)

// monitored is a monitor with a fake clock, a fake cluster and fake counts.
type monitored struct {
	*fragmentationMonitor
	clock    *clocktesting.FakeClock
	registry compbase.KubeRegistry
	guard    *guard.Guard
	// takes is the duration of each count and err its error. state is the result of read. counted receives the time of each count.
	takes   time.Duration
	err     error
	state   *fragmentationState
	counted chan time.Time
	ended   chan struct{}
}

func newMonitored(t *testing.T, interval time.Duration) *monitored {
	t.Helper()
	m := &monitored{
		clock:    clocktesting.NewFakeClock(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)),
		registry: compbase.NewKubeRegistry(), counted: make(chan time.Time, 10), ended: make(chan struct{}),
	}
	m.guard = guard.New(m.clock)
	measured, err := metrics.New(m.registry, time.Now)
	require.NoError(t, err)
	m.fragmentationMonitor = &fragmentationMonitor{
		clock: m.clock, metrics: measured, interval: func() time.Duration { return interval },
		read: func(context.Context) (*fragmentationState, error) {
			if m.state != nil {
				return m.state, nil
			}
			return &fragmentationState{nodes: []*v1.Node{{}}, claims: []*resourceapi.ResourceClaim{plugintest.Claim(1)}}, nil
		},
		count: func(context.Context, *fragmentationState) (*fragmentation.Report, error) {
			m.clock.Step(m.takes)
			m.counted <- m.clock.Now()
			return &fragmentation.Report{Shapes: []fragmentation.Shape{{
				Class: "gpu", Constraint: "ring", Devices: 4, Asked: 3,
				Now: fragmentation.Count{Sets: 1}, Packed: fragmentation.Count{Sets: 2, AtLeast: true}, Idle: fragmentation.Count{Sets: 5},
			}}}, m.err
		},
	}
	return m
}

// start runs the monitor. When the test ends, it stops the monitor and waits until Run has returned.
func (m *monitored) start(t *testing.T) (cancel func()) {
	t.Helper()
	_, ctx := ktesting.NewTestContext(t)
	ctx, end := context.WithCancel(ctx)
	go func() {
		defer close(m.ended)
		m.Run(ctx, m.guard.Started())
	}()
	cancel = func() {
		end()
		<-m.ended
	}
	t.Cleanup(cancel)
	return cancel
}

// sleeps waits until the monitor sleeps on its fake clock.
func (m *monitored) sleeps(t *testing.T) {
	t.Helper()
	require.Eventually(t, m.clock.HasWaiters, time.Minute, time.Millisecond)
}

// requireQuiet requires that the monitor has not counted.
func (m *monitored) requireQuiet(t *testing.T) {
	t.Helper()
	select {
	case at := <-m.counted:
		t.Fatalf("it counted at %s", at)
	default:
	}
}

func (m *monitored) shownValues(t *testing.T) map[string]float64 { return setsIn(t, m.registry) }

// setsIn returns the values of the metrics about device sets, without counters that are zero.
func setsIn(t *testing.T, registry compbase.KubeRegistry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, family := range families {
		name, ours := strings.CutPrefix(family.GetName(), "celset_scheduler_device_set")
		if !ours {
			continue
		}
		for _, metric := range family.GetMetric() {
			key := name
			for _, label := range metric.GetLabel() {
				key += " " + label.GetValue()
			}
			value := metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			if value != 0 || metric.GetCounter() == nil {
				values[key] = value
			}
		}
	}
	return values
}

const noonSeconds = 1767355200.0

// TestNothingIsCountedBeforeScheduling checks that the monitor does not count before its process schedules: only the leader
// counts.
func TestNothingIsCountedBeforeScheduling(t *testing.T) {
	m := newMonitored(t, 5*time.Minute)
	m.start(t)
	m.clock.Step(time.Hour)
	require.False(t, m.clock.HasWaiters())
	m.requireQuiet(t)
	require.Empty(t, m.shownValues(t))

	m.guard.CycleEnded()
	m.sleeps(t)
	m.clock.Step(firstFragmentation - 1)
	m.requireQuiet(t)
	m.clock.Step(1)
	<-m.counted
	m.sleeps(t)
	require.Empty(t, cmp.Diff(map[string]float64{
		"s gpu ring 4 now": 1, "s gpu ring 4 packed": 2, "s gpu ring 4 idle": 5,
		"s_incomplete gpu ring 4 now": 0, "s_incomplete gpu ring 4 packed": 1, "s_incomplete gpu ring 4 idle": 0,
		"_claims gpu ring 4": 3, "s_last_count_timestamp_seconds": noonSeconds + 3600 + 60, "s_last_count_duration_seconds": 0, "s_counts_total complete": 1,
	}, m.shownValues(t)))
}

// TestCountingTakesAHundredthOfACore checks that the pause after a count is at least a hundred times as long as the count.
func TestCountingTakesAHundredthOfACore(t *testing.T) {
	for takes, rest := range map[time.Duration]time.Duration{
		0: 10 * time.Second, time.Millisecond: 10 * time.Second, 100 * time.Millisecond: 10 * time.Second,
		101 * time.Millisecond: 10100 * time.Millisecond, 20 * time.Second: 2000 * time.Second,
	} {
		t.Run(takes.String(), func(t *testing.T) {
			m := newMonitored(t, 10*time.Second)
			m.takes = takes
			m.guard.CycleEnded()
			m.start(t)
			m.sleeps(t)
			m.clock.Step(10 * time.Second)
			ended := <-m.counted
			for range 3 {
				m.sleeps(t)
				m.clock.Step(rest - 1)
				m.requireQuiet(t)
				m.clock.Step(1)
				next := <-m.counted
				require.Equal(t, rest+takes, next.Sub(ended))
				require.LessOrEqual(t, 100*takes, next.Sub(ended))
				ended = next
			}
		})
	}
}

// TestFailedCountsShowNothing checks that after a failed count no counts are exported until a count succeeds.
func TestFailedCountsShowNothing(t *testing.T) {
	m := newMonitored(t, time.Second)
	look := func() map[string]float64 {
		m.look(t.Context())
		values := m.shownValues(t)
		delete(values, "s_last_count_timestamp_seconds")
		return values
	}
	require.Len(t, look(), 3+3+1+1+1)
	m.err = errors.New("a slice is broken")
	require.Equal(t, map[string]float64{"s_counts_total complete": 1, "s_counts_total failed": 1}, look())
	m.err = nil
	require.Len(t, look(), 3+3+1+1+2)

	// A panic while counting does not reach the scheduler.
	count := m.count
	m.count = func(context.Context, *fragmentationState) (*fragmentation.Report, error) { panic("out of range") }
	require.Equal(t, map[string]float64{"s_counts_total complete": 2, "s_counts_total failed": 2}, look())
	m.count = count

	// After a partial count, only the shapes that were counted are exported.
	m.count = func(context.Context, *fragmentationState) (*fragmentation.Report, error) {
		return &fragmentation.Report{NotPacked: "there are too many", Shapes: []fragmentation.Shape{
			{Class: "gpu", Constraint: "ring", Devices: 4, Packed: fragmentation.Count{Sets: 7}, Idle: fragmentation.Count{Sets: 7}},
			{Class: "gpu", Constraint: "ring", Devices: 2, Asked: 1, Error: "no such key"},
			{Class: "gpu", Constraint: "ring", Devices: 2, Asked: 1, Error: "no such key"},
		}}, nil
	}
	require.Empty(t, cmp.Diff(map[string]float64{
		"s gpu ring 4 now": 0, "s gpu ring 4 idle": 7, "s_incomplete gpu ring 4 now": 0, "s_incomplete gpu ring 4 idle": 0,
		"_claims gpu ring 4": 0, "_claims gpu ring 2": 1, "s_last_count_duration_seconds": 0,
		"s_counts_total complete": 2, "s_counts_total failed": 2, "s_counts_total partial": 1,
	}, look()))

	// A count that ends because the process ends is not reported as failed.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m.count = func(ctx context.Context, _ *fragmentationState) (*fragmentation.Report, error) { return nil, ctx.Err() }
	m.look(ctx)
	require.Equal(t, map[string]float64{"s_counts_total complete": 2, "s_counts_total failed": 2, "s_counts_total partial": 1}, m.shownValues(t))
}

// TestNothingIsCountedTwice checks that the last counts are reused as long as the cluster does not change.
func TestNothingIsCountedTwice(t *testing.T) {
	m := newMonitored(t, time.Second)
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: plugintest.NodeName, Labels: map[string]string{"zone": "a"}}}
	m.state = &fragmentationState{
		nodes: []*v1.Node{node}, claims: []*resourceapi.ResourceClaim{plugintest.Claim(1)}, classes: []*resourceapi.DeviceClass{plugintest.Class()}, slices: []*resourceapi.ResourceSlice{plugintest.Slice(1)},
	}
	counted := func() bool {
		m.look(t.Context())
		select {
		case <-m.counted:
			return true
		default:
			return false
		}
	}
	change := func(change func(*fragmentationState)) {
		next := *m.state
		change(&next)
		m.state = &next
	}
	require.True(t, counted())
	m.clock.Step(time.Minute)
	require.False(t, counted())
	values := m.shownValues(t)
	require.InDelta(t, noonSeconds+60, values["s_last_count_timestamp_seconds"], 0)
	require.InDelta(t, 1, values["s gpu ring 4 now"], 0)
	require.InDelta(t, 1, values["s_counts_total unchanged"], 0)

	change(func(s *fragmentationState) {
		alive := node.DeepCopy()
		alive.ResourceVersion = "2"
		s.nodes = []*v1.Node{alive}
	})
	require.False(t, counted(), "the kubelet says that it is alive")
	for name, one := range map[string]func(*fragmentationState){
		"label": func(s *fragmentationState) {
			moved := node.DeepCopy()
			moved.Labels["zone"] = "b"
			s.nodes = []*v1.Node{moved}
		},
		"node":  func(s *fragmentationState) { s.nodes = nil },
		"claim": func(s *fragmentationState) { s.claims = []*resourceapi.ResourceClaim{plugintest.Claim(1)} },
		"class": func(s *fragmentationState) { s.classes = []*resourceapi.DeviceClass{plugintest.Class()} },
		"slice": func(s *fragmentationState) { s.slices = []*resourceapi.ResourceSlice{plugintest.Slice(1)} },
	} {
		change(one)
		require.True(t, counted(), name)
		require.False(t, counted(), name)
	}
	m.err = errors.New("not now")
	change(func(s *fragmentationState) { s.claims = nil })
	require.True(t, counted())
	m.err = nil
	require.True(t, counted(), "the last one failed")
}

// TestCountingEnds checks that Run returns when its context is done, in every state of the monitor.
func TestCountingEnds(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	newMonitored(t, time.Second).start(t)()

	never := newMonitored(t, 0)
	never.guard.CycleEnded()
	never.start(t)
	<-never.ended

	sleeping := newMonitored(t, time.Second)
	sleeping.guard.CycleEnded()
	cancel := sleeping.start(t)
	sleeping.sleeps(t)
	sleeping.clock.Step(time.Second)
	<-sleeping.counted
	sleeping.sleeps(t)
	cancel()
	require.Equal(t, map[string]float64{"s_counts_total complete": 1}, sleeping.shownValues(t), "what nobody looks at any more is not shown")

	busy := newMonitored(t, time.Second)
	begun := make(chan struct{})
	busy.count = func(ctx context.Context, _ *fragmentationState) (*fragmentation.Report, error) {
		close(begun)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	busy.guard.CycleEnded()
	cancel = busy.start(t)
	busy.sleeps(t)
	busy.clock.Step(time.Second)
	<-begun
	cancel()
}

// blocks returns a class whose constraint is true for blocks of devices that begin at multiples of their size.
func blocks() *resourceapi.DeviceClass {
	c := plugintest.ClassDefining(plugintest.ClassName, "block")
	c.Spec.Config[0].Opaque.Parameters.Raw = []byte(`{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": "block",
		"expression": "devices.all(d, d.attributes['mla.example.com'].index / devices.size() == devices[0].attributes['mla.example.com'].index / devices.size())"}`)
	return c
}

// sliceOf returns the slice of a node with eight devices.
func sliceOf(node string) *resourceapi.ResourceSlice {
	s := plugintest.Slice(0, 1, 2, 3, 4, 5, 6, 7)
	s.Name, s.Spec.NodeName, s.Spec.Pool.Name = node, ptr.To(node), node
	return s
}

// owning returns a claim to which one device of the node is allocated.
func owning(name, node string, index int64) *resourceapi.ResourceClaim {
	c := plugintest.Claim(1)
	c.Name, c.UID = name, "uid-of-"+c.UID
	c.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Request: "mla", Driver: plugintest.Driver, Pool: node, Device: plugintest.DeviceName(index)}},
	}}
	return c
}

// TestCountingIsNoScheduling checks that counts ignore unschedulable nodes, and that the monitor's evaluations are missing in
// the scheduler's metrics.
func TestCountingIsNoScheduling(t *testing.T) {
	waits := plugintest.Reference(plugintest.ClaimForClass(plugintest.ClassName, 8), "block")
	waits.Name = "waits"
	objects := []runtime.Object{blocks(), owning("a", "node-1", 0), owning("b", "node-2", 5), waits}
	for i := 1; i <= 4; i++ {
		name := fmt.Sprint("node-", i)
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		node.Spec.Unschedulable = i == 4
		objects = append(objects, node, sliceOf(name))
	}
	ctx, h := plugintest.NewHandle(t, objects...)
	registry := compbase.NewKubeRegistry()
	measured, err := metrics.New(registry, time.Now)
	require.NoError(t, err)
	m := NewFragmentationMonitor(h, h.SharedDRAManager(), plugintest.Features(), measured, never)
	h.Start(ctx, t, objects...)
	state, err := m.read(ctx)
	require.NoError(t, err)
	require.Len(t, state.nodes, 3)
	require.True(t, slices.IsSortedFunc(state.slices, func(a, b *resourceapi.ResourceSlice) int { return strings.Compare(a.Name, b.Name) }))
	again, err := m.read(ctx)
	require.NoError(t, err)
	require.True(t, again.equal(state), "nothing has changed")

	m.look(ctx)
	values := setsIn(t, registry)
	require.WithinDuration(t, time.Now(), time.Unix(int64(values["s_last_count_timestamp_seconds"]), 0), time.Hour)
	require.Positive(t, values["s_last_count_duration_seconds"])
	delete(values, "s_last_count_timestamp_seconds")
	delete(values, "s_last_count_duration_seconds")
	want := map[string]float64{"s_counts_total complete": 1}
	for devices, counts := range map[int][4]float64{8: {1, 1, 2, 3}, 4: {0, 4, 5, 6}, 2: {0, 10, 11, 12}} {
		shape := fmt.Sprint("mla.example.com block ", devices)
		want["_claims "+shape] = counts[0]
		for i, state := range []string{"now", "packed", "idle"} {
			want["s "+shape+" "+state], want["s_incomplete "+shape+" "+state] = counts[i+1], 0
		}
	}
	require.Empty(t, cmp.Diff(want, values))
	for name, value := range plugintest.MetricValues(t, registry) {
		require.True(t, strings.HasPrefix(name, "device_set"), "%s is %v", name, value)
	}
}

// TestRefusedSelectorsAreNotEvaluated checks that a count leaves a claim with expensive selectors on its devices, without an
// evaluation of these selectors. Another scheduler may have allocated such a claim.
func TestRefusedSelectorsAreNotEvaluated(t *testing.T) {
	const cheap, endless = "device.driver == 'mla.example.com'", "[0, 1, 2, 3, 4, 5, 6, 7].all(a, [0, 1, 2, 3, 4, 5, 6, 7].all(b, [0, 1, 2, 3, 4, 5, 6, 7].all(c, " +
		"[0, 1, 2, 3, 4, 5, 6, 7].all(d, [0, 1, 2, 3, 4, 5, 6, 7].all(e, [0, 1, 2, 3, 4, 5, 6, 7].all(f, a + b + c + d + e + f >= 0))))))"
	for selector, want := range map[string]fragmentation.Shape{
		cheap:   {Now: fragmentation.Count{Sets: 1}, Packed: fragmentation.Count{Sets: 2}, Idle: fragmentation.Count{Sets: 3}},
		endless: {Now: fragmentation.Count{Sets: 1}, Packed: fragmentation.Count{Sets: 1}, Idle: fragmentation.Count{Sets: 3}},
	} {
		waits := plugintest.Reference(plugintest.ClaimForClass(plugintest.ClassName, 8), "block")
		waits.Name = "waits"
		objects := []runtime.Object{blocks(), owning("a", "node-1", 0), owning("b", "node-2", 5), waits}
		for _, object := range objects[1:3] {
			object.(*resourceapi.ResourceClaim).Spec.Devices.Requests[0].Exactly.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: selector}}}
		}
		for i := 1; i <= 3; i++ {
			objects = append(objects, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", i)}}, sliceOf(fmt.Sprint("node-", i)))
		}
		ctx, h := plugintest.NewHandle(t, objects...)
		m := NewFragmentationMonitor(h, h.SharedDRAManager(), plugintest.Features(), plugintest.NewMetrics(t), never)
		h.Start(ctx, t, objects...)
		m.look(ctx)
		want.Class, want.Constraint, want.Devices, want.Asked = plugintest.ClassName, "block", 8, 1
		require.Equal(t, want, m.shown.Report.Shapes[0])
	}
}

// TestUnsyncedInformersAreNotCounted checks that the monitor does not count before the informers have synced. The cluster would
// seem empty.
func TestUnsyncedInformersAreNotCounted(t *testing.T) {
	ctx, h := plugintest.NewHandle(t)
	m := NewFragmentationMonitor(h, h.SharedDRAManager(), plugintest.Features(), plugintest.NewMetrics(t), never)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err := m.read(ended)
	require.EqualError(t, err, "the informers have not synced")

	ctx, log := plugintest.WithLog(ctx)
	ctx, expire := context.WithDeadline(ctx, time.Now())
	defer expire()
	m.look(ctx)
	plugintest.RequireLogged(t, log, "Could not count the sets of devices that fit; the metrics don't contain them")
}

// never is an interval that turns the monitor off. The test calls look itself.
func never() time.Duration { return 0 }
