// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/celset/celset/plugin/guard"
)

// bench is a scheduler without an API server. The test sets the pods in its queue and moves its clock.
type bench struct {
	*scheduler.Scheduler
	guard *guard.Guard
	clock *clocktesting.FakePassiveClock
	queue []*v1.Pod
	err   error
	// failed, if not nil, is called when the scheduler handles a failed scheduling attempt.
	failed func()
}

func (b *bench) PodsInActiveQ() []*v1.Pod { return b.queue }

func newBench(t *testing.T, clock *clocktesting.FakePassiveClock) *bench {
	t.Helper()
	b := &bench{clock: clock}
	g := guard.New(clock)
	g.Configure(guard.Limits{SharePercent: 20, ShareBurst: time.Second, BackOffInitial: time.Second, BackOffMax: time.Minute})
	b.guard = g
	g.Watch(b)
	b.Scheduler = &scheduler.Scheduler{
		NextEntity: func(klog.Logger) (framework.QueuedEntityInfo, error) {
			if len(b.queue) == 0 {
				return nil, b.err
			}
			pod := b.queue[0]
			b.queue = b.queue[1:]
			info, err := framework.NewPodInfo(pod)
			return &framework.QueuedPodInfo{PodInfo: info}, err
		},
		FailureHandler: func(context.Context, framework.Framework, *framework.QueuedPodInfo, *fwk.Status, *fwk.NominatingInfo, time.Time) {
			b.failed()
		},
	}
	wrap(b.Scheduler, g)
	return b
}

func pod(namespace, name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}}
}

func (b *bench) admit(p *v1.Pod) *guard.Refusal {
	_, refusal := b.guard.Admit(guard.Request{Pod: p, Claims: []types.UID{"claim-of-" + p.UID}, Activate: func(*v1.Pod) {}})
	return refusal
}

func newClock() *clocktesting.FakePassiveClock {
	return clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
}

// TestCyclesAreWatched checks that the scheduler notifies the fairness guard when a scheduling cycle begins and ends.
func TestCyclesAreWatched(t *testing.T) {
	clock := newClock()
	b := newBench(t, clock)
	b.queue = []*v1.Pod{pod("a", "1"), pod("a", "2"), pod("b", "3")}
	_, err := b.NextEntity(klog.Background())
	require.NoError(t, err)
	require.Nil(t, b.admit(pod("a", "1")))
	clock.SetTime(clock.Now().Add(time.Minute))
	_, err = b.NextEntity(klog.Background())
	require.NoError(t, err)
	require.Equal(t, guard.ReasonShare, b.admit(pod("a", "2")).Reason, "the last one was the namespace's, and another waits")

	b.queue, b.err = nil, errors.New("closed")
	entity, err := b.NextEntity(klog.Background())
	require.ErrorIs(t, err, b.err)
	require.Nil(t, entity)
}

// TestErrorsAreReported checks that a pod whose scheduling attempt ended with an error is not activated before its back-off
// ends.
func TestErrorsAreReported(t *testing.T) {
	clock := newClock()
	b := newBench(t, clock)
	var activated []string
	gate := func(p *v1.Pod) bool {
		return b.guard.Gate(guard.Request{Pod: p, Activate: func(p *v1.Pod) { activated = append(activated, p.Name) }})
	}
	for i := range 8 {
		require.False(t, gate(pod("a", fmt.Sprint(i))))
	}
	handled := 0
	for name, status := range map[string]*fwk.Status{"error": fwk.AsStatus(errors.New("broken")), "refused": fwk.NewStatus(fwk.Unschedulable)} {
		info, err := framework.NewPodInfo(pod("a", name))
		require.NoError(t, err)
		b.failed = func() {
			handled++
			require.True(t, gate(info.Pod), "the queue asks while the failure is handled")
		}
		b.FailureHandler(t.Context(), nil, &framework.QueuedPodInfo{PodInfo: info}, status, nil, time.Time{})
	}
	require.Equal(t, 2, handled)
	for _, want := range [][]string{{"refused"}, {"refused", "error"}} {
		clock.SetTime(clock.Now().Add(500 * time.Millisecond))
		b.guard.Look()
		require.Equal(t, want, activated)
	}
}

func TestCommand(t *testing.T) {
	cmd := NewCommand()
	for _, name := range []string{"config", "feature-gates", "secure-port", "leader-elect", "v", "version"} {
		require.NotNil(t, cmd.Flags().Lookup(name), name)
	}
}

// lock is a leader election lock in memory, without an API server.
type lock struct {
	mutex  sync.Mutex
	holder string
	took   time.Duration
	err    error
}

func (l *lock) set(holder string, err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.holder, l.err = holder, err
}

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder, LeaseDurationSeconds: 15}, []byte(l.holder), nil
}

func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

func (l *lock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	time.Sleep(l.took)
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.err == nil {
		l.holder = record.HolderIdentity
	}
	return l.err
}

func (l *lock) RecordEvent(string) {}

func (l *lock) Identity() string { return "us" }

func (l *lock) Describe() string { return "lock" }

func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := &lock{}
		held := &lease{Interface: under, duration: 15 * time.Second}
		write := func(holder string) {
			_ = held.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: holder})
		}
		require.ErrorIs(t, held.check(), errNotHeld, "it was never held")
		require.NoError(t, held.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "us"}))
		require.NoError(t, held.check())
		time.Sleep(10 * time.Second)
		under.took = 4 * time.Second
		write("us")
		time.Sleep(10 * time.Second)
		require.NoError(t, held.check(), "it was renewed")
		under.took, under.err = 0, errors.New("conflict")
		write("us")
		require.NoError(t, held.check(), "others still leave it alone")
		time.Sleep(time.Second)
		require.ErrorIs(t, held.check(), errNotHeld, "it counts from before the request")
		under.err = nil
		write("us")
		require.NoError(t, held.check())
		under.set("another", nil)
		_, _, err := held.Get(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, held.check(), errNotHeld, "another one has it")
		write("us")
		write("")
		require.ErrorIs(t, held.check(), errNotHeld, "it was released")
	})
}

// TestStoppedLeader checks that a leader's check fails after another scheduler has taken the lease. At this time the elector of
// the former leader still claims to be healthy. It ends only at its renew deadline.
func TestStoppedLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := &lock{}
		held := &lease{Interface: under, duration: 15 * time.Second}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		leading := make(chan struct{})
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: held, LeaseDuration: held.duration, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { close(leading) }, OnStoppedLeading: func() {},
			},
		})
		require.NoError(t, err)
		ended := make(chan struct{})
		go func() {
			elector.Run(ctx)
			close(ended)
		}()
		<-leading
		time.Sleep(time.Minute)
		require.NoError(t, held.check())
		under.set("another", errors.New("conflict"))
		time.Sleep(4 * time.Second)
		require.NoError(t, elector.Check(0), "what the elector says")
		require.ErrorIs(t, held.check(), errNotHeld)
		select {
		case <-ended:
			t.Error("the elector has ended")
		default:
		}
		<-ended
	})
}
