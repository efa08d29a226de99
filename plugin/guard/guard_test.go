// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

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
	clocktesting "k8s.io/utils/clock/testing"
)

// bench is a scheduler with a guard on a fake clock and a fake queue.
type bench struct {
	*Guard
	clock *clocktesting.FakePassiveClock
	// mutex guards the following fields.
	mutex     sync.Mutex
	active    []*v1.Pod
	activated []string
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func newBench() *bench {
	b := &bench{clock: clocktesting.NewFakePassiveClock(noon)}
	b.Guard = New(b.clock)
	b.Configure(Limits{SharePercent: 20, ShareBurst: 250 * time.Millisecond, BackOffInitial: time.Second, BackOffMax: 5 * time.Minute})
	b.Watch(b)
	return b
}

func (b *bench) PodsInActiveQ() []*v1.Pod {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.active
}

func (b *bench) pass(d time.Duration) { b.clock.SetTime(b.clock.Now().Add(d)) }

func pod(namespace, name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)}}
}

// wait sets the pods in the active queue, and makes the guard list the queue at the next decision.
func (b *bench) wait(pods ...*v1.Pod) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.active = pods
	b.program.waiting = waiting{}
}

func (b *bench) request(p *v1.Pod, claims ...types.UID) Request {
	return Request{Pod: p, Claims: claims, Timeout: 500 * time.Millisecond, Activate: func(p *v1.Pod) {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		b.activated = append(b.activated, p.Namespace+"/"+p.Name)
	}}
}

// try runs a scheduling cycle of the given duration for a pod. If fails is set, the attempt ends with this error. try returns
// the refusal, or nil.
func (b *bench) try(p *v1.Pod, takes time.Duration, fails error) *Refusal {
	b.CycleBegan(p.Namespace)
	defer b.CycleEnded()
	attempt, refusal := b.Admit(b.request(p, "claim-of-"+p.UID))
	if refusal != nil {
		return refusal
	}
	b.pass(takes)
	if fails != nil {
		attempt.Failed(fails)
	}
	return nil
}

func TestBackOffDoubles(t *testing.T) {
	b := newBench()
	p := pod("a", "expensive")
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		want *= time.Second
		require.Nil(t, b.try(p, 0, errors.New("over budget")), "attempt %d", i)
		for range 2 {
			refusal := b.try(p, 0, nil)
			require.NotNil(t, refusal)
			require.Equal(t, ReasonBackOff, refusal.Reason)
			require.Equal(t, fmt.Sprintf("scheduling attempts took too much time %d times in a row: the next attempt is at %s; the last error was: over budget",
				i+1, b.clock.Now().Add(want).Format(time.RFC3339)), refusal.Message, "the message is the same each time")
		}
		wait, any := b.Look()
		require.True(t, any)
		require.Equal(t, want, wait)
		b.pass(want - 1)
		b.Look()
		require.Empty(t, b.activated)
		b.pass(1)
		b.Look()
		require.Equal(t, []string{"a/expensive"}, b.activated)
		b.activated = nil
		_, any = b.Look()
		require.False(t, any, "nothing is left to be done")
	}
	require.Nil(t, b.try(p, 0, nil))
	require.Nil(t, b.try(p, 0, errors.New("over budget")))
	require.Contains(t, b.try(p, 0, nil).Message, " 1 times in a row", "an attempt within the limits forgets")
}

// TestBackOffIsOfClaims checks that pods that share a claim share its back-off. Another claim, or a pod without claims, has a
// back-off of its own.
func TestBackOffIsOfClaims(t *testing.T) {
	b := newBench()
	attempt, _ := b.Admit(b.request(pod("a", "1"), "x", "y"))
	attempt.Failed(errors.New("first"))
	attempt.Failed(errors.New("another node said so as well"))
	_, refusal := b.Admit(b.request(pod("a", "2"), "y"))
	require.Contains(t, refusal.Message, "first")
	_, refusal = b.Admit(b.request(pod("a", "2"), "z"))
	require.Nil(t, refusal)

	attempt, _ = b.Admit(b.request(pod("a", "3")))
	attempt.Failed(errors.New("no claim"))
	_, refusal = b.Admit(b.request(pod("a", "3")))
	require.NotNil(t, refusal)
	_, refusal = b.Admit(b.request(pod("a", "4")))
	require.Nil(t, refusal)
}

func TestBackOffsAreBounded(t *testing.T) {
	b := newBench()
	for i := range maxBackOffs + 10 {
		b.pass(time.Millisecond)
		attempt, refusal := b.Admit(b.request(pod("a", "p"), types.UID(fmt.Sprint(i))))
		require.Nil(t, refusal)
		attempt.Failed(errors.New("x"))
	}
	require.Len(t, b.backOffs.entries, maxBackOffs)
	_, refusal := b.Admit(b.request(pod("a", "p"), types.UID(fmt.Sprint(maxBackOffs+9))))
	require.NotNil(t, refusal, "those that are tried last stay")
	b.pass(time.Hour)
	attempt, _ := b.Admit(b.request(pod("a", "p"), "new"))
	attempt.Failed(errors.New("x"))
	require.Len(t, b.backOffs.entries, 1, "the others are gone for long")
}

// TestOthersGoFirst has one namespace with many pods whose attempts take long. A pod of another namespace must wait no longer
// than one attempt plus the first namespace's saved tokens.
func TestOthersGoFirst(t *testing.T) {
	for _, takes := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond} {
		t.Run(takes.String(), func(t *testing.T) {
			b := newBench()
			b.wait(pod("other", "waits"))
			start := b.clock.Now()
			tries := 0
			for ; ; tries++ {
				if refusal := b.try(pod("hostile", fmt.Sprint(tries)), takes, nil); refusal != nil {
					require.Equal(t, ReasonShare, refusal.Reason)
					require.Equal(t, "pods of namespace hostile took more than 20 percent of the scheduler's time while pods of other namespaces wait: "+
						"the scheduler tries the pods of other namespaces first", refusal.Message)
					break
				}
			}
			require.LessOrEqual(t, b.clock.Since(start), 750*time.Millisecond)
			require.Nil(t, b.try(pod("other", "waits"), time.Millisecond, nil))

			b.Look()
			require.Empty(t, b.activated, "somebody still waits")
			b.wait()
			b.Look()
			require.Equal(t, []string{fmt.Sprintf("hostile/%d", tries)}, b.activated)
			require.Nil(t, b.try(pod("hostile", "again"), takes, nil), "who is alone is not put off")
		})
	}
}

// TestShare checks that a busy namespace gets exactly its share of the time while others wait.
func TestShare(t *testing.T) {
	b := newBench()
	b.wait(pod("other", "waits"))
	took, total := time.Duration(0), 100*time.Second
	for start := b.clock.Now(); b.clock.Since(start) < total; {
		const takes = 50 * time.Millisecond
		if b.try(pod("hostile", "p"), takes, nil) == nil {
			took += takes
		}
		// The waiting pods of other namespaces need little time and come from many namespaces.
		b.pass(time.Millisecond)
	}
	require.InDelta(t, 20, took.Seconds(), 1)
}

// TestSharesLeaveNoTimeUnused checks that pods of two busy namespaces are not refused if both namespaces have no tokens.
func TestSharesLeaveNoTimeUnused(t *testing.T) {
	b := newBench()
	b.wait(pod("a", "waits"), pod("b", "waits"))
	refused := 0
	for i := range 1000 {
		if b.try(pod([]string{"a", "b"}[i%2], "p"), 10*time.Millisecond, nil) != nil {
			refused++
		}
	}
	require.Less(t, refused, 20)
}

func TestNoShares(t *testing.T) {
	b := &bench{clock: clocktesting.NewFakePassiveClock(noon)}
	b.Guard = New(b.clock)
	b.Configure(Limits{SharePercent: 100, ShareBurst: time.Millisecond})
	b.Watch(b)
	b.wait(pod("other", "waits"))
	for range 10 {
		require.Nil(t, b.try(pod("a", "p"), time.Second, nil))
	}
}

// TestDebtIsBounded checks that a namespace that was busy alone for an hour waits about one second when others come.
func TestDebtIsBounded(t *testing.T) {
	b := newBench()
	require.Nil(t, b.try(pod("a", "p"), time.Hour, nil))
	b.wait(pod("other", "waits"))
	require.NotNil(t, b.try(pod("a", "p"), 0, nil))
	b.pass(1300 * time.Millisecond)
	b.wait(pod("other", "waits"))
	require.Nil(t, b.try(pod("a", "p"), 0, nil))
}

func TestSharesAreBounded(t *testing.T) {
	b := newBench()
	for i := range maxShares + 100 {
		b.CycleBegan(fmt.Sprint(i))
		b.pass(time.Microsecond)
		b.CycleEnded()
	}
	require.LessOrEqual(t, len(b.shares.buckets), maxShares)
	require.Greater(t, len(b.shares.buckets), 1)
}

func TestAttemptEndsWhenOthersWait(t *testing.T) {
	b := newBench()
	b.CycleBegan("a")
	attempt, _ := b.Admit(b.request(pod("a", "p"), "claim"))
	var told []error
	attempt.OnOver(func(err error) { told = append(told, err) })
	b.wait(pod("other", "waits"))
	b.pass(499 * time.Millisecond)
	wait, any := b.Look()
	require.True(t, any)
	require.Equal(t, time.Millisecond, wait)
	require.NoError(t, attempt.Over())
	require.Equal(t, time.Millisecond, attempt.Remaining(time.Second))

	b.wait(pod("a", "of the same namespace"))
	b.pass(time.Hour)
	wait, any = b.Look()
	require.True(t, any)
	require.Equal(t, pollInterval, wait)
	require.NoError(t, attempt.Over(), "nobody waits")

	b.wait(pod("other", "waits"))
	b.Look()
	require.EqualError(t, attempt.Over(), "not checked, because the attempt to schedule the pod took longer than 500ms while other pods wait: "+
		"to allow more time, raise attemptTimeout in the scheduler plugin's DynamicResourcesCELArgs")
	attempt.OnOver(func(err error) { told = append(told, err) })
	require.Len(t, told, 2)
	require.Equal(t, attempt.Over(), told[0])
	_, any = b.Look()
	require.False(t, any)
}

func TestAttemptThatEndedIsLeftAlone(t *testing.T) {
	b := newBench()
	b.CycleBegan("a")
	attempt, _ := b.Admit(b.request(pod("a", "p"), "claim"))
	b.CycleEnded()
	b.wait(pod("other", "waits"))
	b.pass(time.Hour)
	_, any := b.Look()
	require.False(t, any)
	require.NoError(t, attempt.Over())
}

// TestWithoutQueue checks a program that provides no queue: each attempt ends when its time is over, and no pod is refused.
func TestWithoutQueue(t *testing.T) {
	b := newBench()
	b.program.queue = nil
	attempt, _ := b.Admit(b.request(pod("a", "p"), "claim"))
	b.pass(300 * time.Millisecond)
	attempt.Progress()
	b.pass(200 * time.Millisecond)
	b.Look()
	require.Error(t, attempt.Over())
	b.pass(time.Second)

	_, refusal := b.Admit(b.request(pod("a", "q"), "another"))
	require.Nil(t, refusal, "there are no shares")
	require.Equal(t, -50*time.Millisecond, b.shares.tokens("a", b.clock.Now(), &b.limits), "the attempt was last seen after 300 ms")
}

// TestNoAttempt checks the methods of a nil Attempt, and an Attempt without a time limit.
func TestNoAttempt(t *testing.T) {
	var none *Attempt
	none.Progress()
	none.Failed(errors.New("x"))
	none.Succeeded()
	none.OnOver(func(error) { t.Error("called") })
	require.NoError(t, none.Over())
	require.Equal(t, time.Second, none.Remaining(time.Second))

	b := newBench()
	r := b.request(pod("a", "p"))
	r.Timeout = 0
	attempt, _ := b.Admit(r)
	b.wait(pod("other", "waits"))
	b.pass(time.Hour)
	b.Look()
	require.NoError(t, attempt.Over())
	require.Equal(t, time.Second, attempt.Remaining(time.Second))
}

// TestRun checks that Run wakes up when work is due, and returns when its context is done.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.Guard = New(realClock{})
		b.Configure(Limits{SharePercent: 20, ShareBurst: 250 * time.Millisecond, BackOffInitial: 50 * time.Millisecond, BackOffMax: time.Second})
		b.Watch(b)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			b.Run(ctx)
		}()
		r := b.request(pod("a", "p"), "claim")
		r.Timeout = 20 * time.Millisecond
		b.CycleBegan("a")
		attempt, refusal := b.Admit(r)
		require.Nil(t, refusal)
		b.mutex.Lock()
		b.active = []*v1.Pod{pod("other", "waits")}
		b.mutex.Unlock()
		time.Sleep(time.Second)
		require.Error(t, attempt.Over())
		attempt.Failed(attempt.Over())
		b.CycleEnded()
		_, refusal = b.Admit(r)
		require.NotNil(t, refusal)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, b.activated, 1)
		cancel()
		<-ended
	})
}

type realClock struct{}

func (realClock) Now() time.Time                  { return time.Now() }
func (realClock) Since(t time.Time) time.Duration { return time.Since(t) }

// TestBegun checks that the channel of Started is closed when the program reports the beginning or the end of a cycle.
func TestBegun(t *testing.T) {
	for name, begin := range map[string]func(*bench){
		"a cycle began": func(b *bench) { b.CycleBegan("a") },
		"none before":   func(b *bench) { b.CycleEnded() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.Look()
			select {
			case <-b.Started():
				t.Fatal("nothing has begun")
			default:
			}
			begin(b)
			<-b.Started()
			begin(b)
		})
	}
}
