// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/turns"
)

func requestOf(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func TestALaneIsThereBeforeItsQueue(t *testing.T) {
	l := &lane{}
	l.add(requestOf("a", "1"))
	q := turns.NewQueue("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	require.NoError(t, l.source().Start(t.Context(), q))
	l.add(requestOf("b", "2"))
	for _, want := range []reconcile.Request{requestOf("a", "1"), requestOf("b", "2")} {
		got, _ := q.Get()
		require.Equal(t, want, got)
	}
}

// paced is a Placement with its records and a fake time.
type paced struct {
	t       *testing.T
	records *records
	object  *clusterv1beta1.Placement
	now     time.Time
}

func newPaced(t *testing.T) *paced {
	return &paced{
		t: t, records: newRecords(Timeouts{}.orDefaults()), now: time.Unix(1_000_000, 0),
		object: &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "1", Generation: 1}},
	}
}

// end ends an attempt to decide the Placement. took is the duration of the attempt.
func (p *paced) end(took time.Duration, result *placement.Result) verdict {
	p.t.Helper()
	var got verdict
	p.records.change(p.object, func(known *record) {
		known.spend(took, result.Overrun == nil)
		got = known.judge(p.records.timeouts, result, p.now)
		known.slow = got.slow
	})
	require.Equal(p.t, got.slow, p.records.named(client.ObjectKeyFromObject(p.object)).slow)
	return got
}

func (p *paced) turn() time.Duration { return p.records.get(p.object).turn(p.records.timeouts, p.now) }

var (
	quick    = &placement.Result{}
	costly   = &placement.Result{TotalCost: ExpensiveCost + 1}
	pending  = &placement.Result{Overrun: &placement.Overrun{}}
	hopeless = &placement.Result{Overrun: &placement.Overrun{Evaluations: true}}
)

func TestWhichPlacementsAreExpensive(t *testing.T) {
	p := newPaced(t)
	require.Equal(t, DefaultTurn, p.turn())
	require.Equal(t, verdict{turn: TurnDone}, p.end(DefaultTurn, quick))
	require.Equal(t, verdict{turn: TurnDone, slow: true}, p.end(time.Millisecond, costly), "cost does not depend on the machine")
	require.Equal(t, verdict{turn: TurnDone}, p.end(time.Millisecond, quick))
	require.Equal(t, verdict{turn: TurnDone, slow: true}, p.end(DefaultTurn+1, quick))
	p.object.Generation++
	require.True(t, p.records.get(p.object).slow, "it is not known yet whether a change made it cheaper")
	require.Equal(t, verdict{turn: TurnDone}, p.end(time.Millisecond, quick))
}

func TestTurnsEnd(t *testing.T) {
	p := newPaced(t)
	for range 19 {
		require.Equal(t, DefaultTurn, p.turn())
		require.Equal(t, verdict{turn: TurnContinued, slow: true}, p.end(DefaultTurn, pending))
	}
	require.Equal(t, verdict{turn: TurnFailed, delay: time.Second, slow: true}, p.end(DefaultTurn, pending), "twenty turns are five seconds")

	require.Zero(t, p.turn())
	p.now = p.now.Add(400 * time.Millisecond)
	require.Equal(t, verdict{turn: TurnContinued, delay: 600 * time.Millisecond, slow: true}, p.end(0, pending), "it still waits")
	p.now = p.now.Add(600 * time.Millisecond)
	require.Equal(t, DefaultTurn, p.turn())
	require.Equal(t, verdict{turn: TurnContinued, slow: true}, p.end(time.Second, pending))
	require.Equal(t, verdict{turn: TurnDone, slow: true}, p.end(time.Millisecond, quick), "all turns count")
	require.Equal(t, verdict{turn: TurnDone}, p.end(time.Millisecond, quick))
}

func TestTheLastTurnIsShorter(t *testing.T) {
	p := newPaced(t)
	p.end(placement.DefaultTimeout-time.Millisecond, pending)
	require.Equal(t, time.Millisecond, p.turn())
}

func TestDelaysGrow(t *testing.T) {
	p := newPaced(t)
	for _, want := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		got := p.end(time.Millisecond, hopeless)
		require.Equal(t, verdict{turn: TurnFailed, delay: time.Duration(want) * time.Second, slow: true}, got)
		p.now = p.now.Add(got.delay)
	}
	require.Equal(t, lastDelay, delayAfter(1_000_000))

	p.end(time.Millisecond, hopeless)
	require.Zero(t, p.turn())
	p.object.Generation++
	require.Equal(t, DefaultTurn, p.turn(), "who mends it need not wait")
	require.Equal(t, time.Second, p.end(time.Millisecond, hopeless).delay)
	p.now = p.now.Add(time.Second)
	p.end(time.Millisecond, quick)
	require.Equal(t, time.Second, p.end(time.Millisecond, hopeless).delay, "it was well in between")
}

// TestAnotherPlacementOfTheNameStaysInTheQueue checks that a recreated Placement stays in the queue of the deleted one, because
// a worker of that queue may still be deciding a Placement of this name.
func TestAnotherPlacementOfTheNameStaysInTheQueue(t *testing.T) {
	p := newPaced(t)
	p.end(time.Millisecond, hopeless)
	p.records.change(p.object, func(known *record) { known.version, known.listed = "20", true })
	p.object.UID, p.object.Generation = "2", 1
	require.Equal(t, record{uid: "2", pace: pace{generation: 1, slow: true}}, p.records.get(p.object))
	p.records.change(p.object, func(*record) {})
	require.Equal(t, record{uid: "2", pace: pace{generation: 1, slow: true}}, p.records.named(client.ObjectKeyFromObject(p.object)))
}

// TestFailuresSayNothingOfTime checks that an attempt that failed with an error, such as a failed write, does not change the
// pace.
func TestFailuresSayNothingOfTime(t *testing.T) {
	p := newPaced(t)
	for range 100 {
		p.records.change(p.object, func(known *record) {
			known.spend(100*time.Millisecond, true)
			require.Equal(t, verdict{turn: TurnDone}, known.judge(p.records.timeouts, nil, p.now))
		})
	}
	require.Equal(t, DefaultTurn, p.turn())
	p.end(time.Millisecond, hopeless)
	p.records.forget(client.ObjectKeyFromObject(p.object))
	require.Empty(t, p.records.of)
}

func TestCollectedOncePerChange(t *testing.T) {
	n, failure := 0, error(nil)
	c := collected[int]{}
	c.collect = func(context.Context) (int, error) {
		n++
		return n, failure
	}
	requireValue := func(want int) {
		t.Helper()
		value, err := c.get(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, value)
	}
	requireValue(1)
	requireValue(1)
	c.changed()
	c.changed()
	requireValue(2)

	failure = errors.New("no cache")
	requireValue(2)
	c.changed()
	_, err := c.get(t.Context())
	require.ErrorIs(t, err, failure)
	failure = nil
	requireValue(4)
	requireValue(4)
}

// TestCollectedDuringChange checks that the value is collected again after a change that happened during collect, since the
// value may lack that change.
func TestCollectedDuringChange(t *testing.T) {
	n := 0
	c := collected[int]{}
	c.collect = func(context.Context) (int, error) {
		if n++; n == 1 {
			c.changed()
		}
		return n, nil
	}
	for _, want := range []int{1, 2, 2} {
		value, err := c.get(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, value)
	}
}

func TestCollectedConcurrently(t *testing.T) {
	state := 0
	var lock sync.Mutex
	c := collected[int]{}
	c.collect = func(context.Context) (int, error) {
		lock.Lock()
		defer lock.Unlock()
		return state, nil
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 200 {
				lock.Lock()
				state++
				changed := state
				lock.Unlock()
				c.changed()
				if value, err := c.get(t.Context()); err != nil || value < changed {
					t.Errorf("%d after change %d: %v", value, changed, err)
				}
			}
		})
	}
	wait.Wait()
}

func TestUnchangedClustersAreTheSameObjects(t *testing.T) {
	list := func(versions string) (result []*clusterv1.ManagedCluster) {
		for i, version := range strings.Fields(versions) {
			if version != "-" {
				result = append(result, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
					Name: string(rune('a' + i)), UID: types.UID(version[:1]), ResourceVersion: version[1:],
				}})
			}
		}
		return result
	}
	for _, test := range []struct {
		former, now string
		// same[i] is the index of the former object that is returned for cluster i, or -1 for a new object.
		same []int
	}{
		{"", "u1 u1", []int{-1, -1}}, {"u1", "", nil},
		{"u1 u1 u1", "u1 u2 u1", []int{0, -1, 2}}, {"u1 u1", "u1 v1", []int{0, -1}}, // one changes, one is replaced
		{"u1 u1 u1", "- u1 u1", []int{1, 2}}, {"u1 - u1", "u1 u1 u1", []int{0, -1, 1}}, // one goes, one comes
	} {
		former, now := list(test.former), list(test.now)
		got := unchanged(former, now)
		require.Len(t, got, len(now), test)
		for i, c := range got {
			require.Equal(t, now[i], c, test)
			require.Equal(t, test.same[i], slices.Index(former, c), test)
		}
	}
}
