// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// schedulerBench models upstream's scheduling queue. A pod is either queued, outside because the guard gates it, or gone.
type schedulerBench struct {
	*bench
	queued, outside []*v1.Pod
	gone            map[types.UID]bool
	// attempts and refusals count the admitted and the refused attempts of each pod.
	attempts, refusals map[types.UID]int
}

func newSchedulerBench() *schedulerBench {
	return &schedulerBench{bench: newBench(), gone: map[types.UID]bool{}, attempts: map[types.UID]int{}, refusals: map[types.UID]int{}}
}

func (s *schedulerBench) requestOf(p *v1.Pod) Request {
	return Request{
		Pod: p, Claims: []types.UID{"claim-of-" + p.UID},
		Activate: func(p *v1.Pod) {
			if i := slices.IndexFunc(s.outside, func(o *v1.Pod) bool { return o.UID == p.UID }); i >= 0 {
				waits := s.outside[i]
				s.outside = slices.Delete(s.outside, i, i+1)
				s.enqueue(waits)
			}
		},
	}
}

// enqueue queues a pod unless the guard gates it.
func (s *schedulerBench) enqueue(p *v1.Pod) {
	if s.Gate(s.requestOf(p)) {
		s.outside = append(s.outside, p)
	} else {
		s.queued = append(s.queued, p)
	}
	s.wait(s.queued...)
}

// next runs a cycle of the given duration for the first queued pod. It returns false if the queue is empty.
func (s *schedulerBench) next(takes time.Duration) bool {
	if len(s.queued) == 0 {
		return false
	}
	p := s.queued[0]
	s.queued = s.queued[1:]
	s.wait(s.queued...)
	s.CycleBegan(p.Namespace)
	if _, refusal := s.Admit(s.requestOf(p)); refusal != nil {
		s.refusals[p.UID]++
		s.outside = append(s.outside, p)
	} else {
		s.attempts[p.UID]++
		s.pass(takes)
	}
	s.CycleEnded()
	s.Look()
	return true
}

// TestNewPodsTakeTurns checks that new pods and retried pods take turns, so that no pod waits for all pods of the other kind.
func TestNewPodsTakeTurns(t *testing.T) {
	s := newSchedulerBench()
	for i := range 400 {
		p := pod("a", fmt.Sprint("again-", i))
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable}}
		s.enqueue(p)
	}
	for i := range 50 {
		s.enqueue(pod("a", fmt.Sprint("new-", i)))
	}
	for range maxQueued + 20 {
		require.True(t, s.next(time.Microsecond))
	}
	require.Positive(t, s.attempts["a/new-0"])
	require.Positive(t, s.attempts["a/new-9"])
	require.Zero(t, s.attempts["a/new-11"])
	require.Positive(t, s.attempts[types.UID(fmt.Sprint("a/again-", maxQueued+9))])
}

// TestWaitingCostsNothing checks that each pod of a namespace without tokens is refused at most once, however long the pod
// waits and however often other pods come and go.
func TestWaitingCostsNothing(t *testing.T) {
	s := newSchedulerBench()
	const many = 400
	for i := range many {
		s.enqueue(pod("many", fmt.Sprint(i)))
	}
	for i := range 2000 {
		// Another tenant creates pods now and then.
		if i%2 == 0 {
			s.enqueue(pod("other", fmt.Sprint(i)))
		}
		s.next(50 * time.Millisecond)
		s.pass(time.Millisecond)
		s.Look()
	}
	tried, refused := 0, 0
	for i := range many {
		uid := pod("many", fmt.Sprint(i)).UID
		tried += s.attempts[uid]
		refused += s.refusals[uid]
		require.LessOrEqual(t, s.refusals[uid], 1, "%s", uid)
	}
	require.Equal(t, many, tried, "all are tried in the end")
	require.LessOrEqual(t, refused, many)
	s.pass(time.Second)
	s.Look()
	require.Empty(t, s.lines.byNamespace)
}

// TestEachPodHasATurn checks random sequences of events. Each pod that is not deleted must be tried in the end, and the guard
// must keep no state.
func TestEachPodHasATurn(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		s, n := newSchedulerBench(), 0
		var all []*v1.Pod
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) {
				n++
				p := pod(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "namespace"), fmt.Sprint(n))
				p.Spec.Priority = ptr.To(int32(rapid.IntRange(0, 2).Draw(t, "priority")))
				if rapid.Bool().Draw(t, "told") {
					p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse}}
				}
				all = append(all, p)
				s.enqueue(p)
			},
			"delete": func(t *rapid.T) {
				if len(s.outside) == 0 {
					t.Skip("none waits")
				}
				i := rapid.IntRange(0, len(s.outside)-1).Draw(t, "pod")
				s.gone[s.outside[i].UID] = true
				s.Forget(s.outside[i])
				s.outside = slices.Delete(s.outside, i, i+1)
			},
			"event": func(t *rapid.T) {
				// An event in the cluster makes the scheduler call Gate again.
				if len(s.outside) == 0 {
					t.Skip("none waits")
				}
				i := rapid.IntRange(0, len(s.outside)-1).Draw(t, "pod")
				p := s.outside[i]
				s.outside = slices.Delete(s.outside, i, i+1)
				s.enqueue(p)
			},
			"try": func(t *rapid.T) {
				s.next(time.Duration(rapid.IntRange(0, 300).Draw(t, "takes")) * time.Millisecond)
			},
			"pass": func(t *rapid.T) {
				s.pass(time.Duration(rapid.IntRange(0, 7000).Draw(t, "time")) * time.Millisecond)
				s.Look()
			},
		})
		for range 100 * (len(all) + 1) {
			if !s.next(0) {
				s.pass(pollInterval)
				s.Look()
			}
		}
		for _, p := range all {
			require.True(t, s.gone[p.UID] || s.attempts[p.UID] > 0, "%s was never tried", p.UID)
			require.LessOrEqual(t, s.refusals[p.UID], 2, "once for the share, and once to be told")
		}
		s.pass(time.Minute)
		s.Look()
		require.Empty(t, s.lines.byNamespace)
		require.Empty(t, s.putOff.backingOff)
		require.Empty(t, s.unreported.pods)
	})
}

// TestLinesAreInOrder checks that the line is ordered by priority, then by arrival. A namespace without tokens gets two pods
// queued. The first of the two is tried even if pods of other namespaces have come since.
func TestLinesAreInOrder(t *testing.T) {
	b := newBench()
	b.wait(pod("other", "waits"))
	require.Nil(t, b.try(pod("a", "first"), time.Second, nil))
	for i, priority := range []int32{0, 5, 0, 5} {
		p := pod("a", fmt.Sprint(i))
		p.Spec.Priority = &priority
		require.NotNil(t, b.try(p, 0, nil))
	}
	b.Look()
	require.Empty(t, b.activated)
	b.wait()
	b.Look()
	require.Equal(t, []string{"a/1", "a/3"}, b.activated)
	b.Look()
	require.Len(t, b.activated, 2)
	b.wait(pod("other", "waits"), pod("a", "3"))
	require.Nil(t, b.try(pod("a", "1"), 0, nil), "a turn is not refused although others have come")
	high := pod("a", "3")
	high.Spec.Priority = ptr.To[int32](5)
	require.NotNil(t, b.try(high, 0, nil))
	b.wait()
	b.Look()
	require.Equal(t, []string{"a/1", "a/3", "a/3", "a/0"}, b.activated)
}

// TestFewPodsAreQueued creates many pods at once. At most maxQueued of them may be queued, and each attempt makes room for one
// more.
func TestFewPodsAreQueued(t *testing.T) {
	s := newSchedulerBench()
	const many = 300
	for i := range many {
		s.enqueue(pod("a", fmt.Sprint(i)))
	}
	require.Len(t, s.queued, maxQueued)
	require.Len(t, s.outside, many-maxQueued)
	for range many {
		require.True(t, s.next(0), "the queue does not run dry")
		require.LessOrEqual(t, len(s.queued), maxQueued)
	}
	require.Len(t, s.attempts, many)
	require.Empty(t, s.refusals)
}

// TestQueuedPodsThatAreNotTried checks that pods that leave the scheduling queue without an attempt make room for others.
func TestQueuedPodsThatAreNotTried(t *testing.T) {
	s := newSchedulerBench()
	for i := range 20 {
		s.enqueue(pod("a", fmt.Sprint(i)))
	}
	// Another plugin gates the queued pods.
	s.queued = nil
	s.wait()
	for range 3 {
		s.pass(pollInterval)
		s.Look()
		s.queued = nil
		s.wait()
	}
	require.Empty(t, s.outside)
}

// TestBackingOffPodsWaitOutside checks that Gate stops a pod whose claim is in back-off, and that the guard activates the pod
// when the back-off ends.
func TestBackingOffPodsWaitOutside(t *testing.T) {
	b := newBench()
	require.Nil(t, b.try(pod("a", "p"), 0, fmt.Errorf("over budget")))
	r := b.request(pod("a", "p"), "claim-of-a/p")
	require.True(t, b.Gate(r))
	b.pass(time.Second)
	b.Look()
	require.Equal(t, []string{"a/p"}, b.activated)
	require.False(t, b.Gate(r))
}

// takesItsShare uses up the tokens of a namespace. After that, a pod of another namespace waits.
func (s *schedulerBench) takesItsShare(namespace string, waits *v1.Pod) {
	s.CycleBegan(namespace)
	s.pass(time.Second)
	s.CycleEnded()
	s.wait(waits)
	s.Look()
}

// TestDeletedPodsLeaveTheLine checks that deleted pods don't fill the line. A quota does not limit deleted pods, so a full line
// would let a tenant's further pods through.
func TestDeletedPodsLeaveTheLine(t *testing.T) {
	s := newSchedulerBench()
	alice := pod("alice", "waits")
	s.takesItsShare("mallory", alice)
	require.NotNil(t, s.try(pod("mallory", "refused"), 0, nil), "one in line is alive")
	for i := range 10_000 {
		p := pod("mallory", fmt.Sprint(i))
		s.Gate(s.requestOf(p))
		s.Forget(p)
	}
	for range 10 {
		s.takesItsShare("mallory", alice)
	}
	heavy := pod("mallory", "heavy")
	refused := s.Gate(s.requestOf(heavy)) || s.try(heavy, time.Second, nil) != nil
	require.True(t, refused, "the namespace has no share, and %d pods are in line", len(s.lines.of("mallory").order))
	require.Less(t, len(s.lines.of("mallory").order), 1000, "two are alive")
}

// TestDeletedPodsDoNotKeepOthersFromBeingActivated deletes many pods with a long back-off. A pod of another namespace must be
// activated after its own short back-off.
func TestDeletedPodsDoNotKeepOthersFromBeingActivated(t *testing.T) {
	s := newSchedulerBench()
	heavy := pod("mallory", "heavy")
	for range 9 {
		s.pass(5 * time.Minute)
		require.Nil(t, s.try(heavy, 0, errors.New("over budget")))
	}
	for i := range 10_000 {
		p := pod("mallory", fmt.Sprint(i))
		r := s.requestOf(p)
		r.Claims = []types.UID{"claim-of-mallory/heavy"}
		require.True(t, s.Gate(r))
		s.Forget(p)
	}
	p := pod("alice", "p")
	require.Nil(t, s.try(p, 0, errors.New("over budget")))
	s.enqueue(p)
	require.Contains(t, s.outside, p)
	for range 10 {
		s.pass(time.Second)
		s.Look()
	}
	require.True(t, slices.Contains(s.queued, p), "it was to wait for a second")
}

// listings is a scheduling queue that counts how often the guard lists it.
type listings struct {
	pods []*v1.Pod
	n    int
}

func (l *listings) PodsInActiveQ() []*v1.Pod {
	l.n++
	return l.pods
}

// TestLongQueuesAreListedSeldom checks that the guard rarely lists a long queue. Listing many pods takes longer than trying one
// pod, and locks the queue meanwhile. So a decision may use a list that is a tenth of a second old.
func TestLongQueuesAreListedSeldom(t *testing.T) {
	b, queue := newBench(), &listings{}
	for i := range 10_000 {
		queue.pods = append(queue.pods, pod("others", fmt.Sprint(i)))
	}
	b.Watch(queue)
	for i := range maxQueued {
		p := pod("a", fmt.Sprint(i))
		queue.pods = append(queue.pods, p)
		require.False(t, b.Gate(b.request(p)))
	}
	require.True(t, b.Gate(b.request(pod("a", "waits"))))
	for range 1000 {
		b.pass(time.Millisecond)
		b.Look()
		require.Nil(t, b.try(pod("b", "p"), 0, nil))
	}
	require.LessOrEqual(t, queue.n, 2*11)
	require.GreaterOrEqual(t, queue.n, 5)
	require.Empty(t, b.activated)
	// The queued pods of namespace a have left the queue, so its next pod is activated.
	queue.pods = queue.pods[:10_000]
	b.pass(time.Second)
	b.Look()
	require.Equal(t, []string{"a/waits"}, b.activated)
}

// TestPodsBackOffAfterErrors checks that a pod whose attempts end with errors waits longer each time before it can be tried
// again, while other pods are tried.
func TestPodsBackOffAfterErrors(t *testing.T) {
	s := newSchedulerBench()
	const many = 50
	for i := range many {
		s.enqueue(pod("a", fmt.Sprint(i)))
	}
	const tick = 50 * time.Millisecond
	attempts, backingOff := 0, map[*v1.Pod]time.Time{}
	for range time.Minute / tick {
		// A pod that passed the gate backs off in the scheduling queue. After that it is tried without another call of Gate.
		for p, until := range backingOff {
			if !until.After(s.clock.Now()) {
				s.queued = append(s.queued, p)
				delete(backingOff, p)
			}
		}
		for len(s.queued) > 0 {
			p := s.queued[0]
			s.queued = s.queued[1:]
			s.wait(s.queued...)
			s.CycleBegan(p.Namespace)
			_, refusal := s.Admit(s.requestOf(p))
			require.Nil(t, refusal)
			attempts++
			s.Failed(p, true)
			s.CycleEnded()
			p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Message: "error"}}
			if s.Gate(s.requestOf(p)) {
				s.outside = append(s.outside, p)
			} else {
				backingOff[p] = s.lines.errors.next(p)
			}
		}
		s.pass(tick)
		s.Look()
	}
	require.InDelta(t, 9*many, attempts, 2*many, "after 1, 2, 4, 8 and then each 10 seconds")
	p := pod("b", "p")
	for _, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
		s.Failed(p, true)
		require.Equal(t, s.clock.Now().Add(want*time.Second), s.lines.errors.next(p))
	}
	s.Failed(p, false)
	require.Zero(t, s.lines.errors.next(p))
}
