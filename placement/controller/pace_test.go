// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/placement"
)

// paced is a Placement with what happens to it.
type paced struct {
	t      *testing.T
	paces  *paces
	object *clusterv1beta1.Placement
	now    time.Time
}

func newPaced(t *testing.T) *paced {
	return &paced{
		t: t, paces: newPaces(Timeouts{}.orDefaults()), now: time.Unix(1_000_000, 0),
		object: &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "1", Generation: 1}},
	}
}

// end ends an attempt that took a while with a result.
func (p *paced) end(took time.Duration, result *placement.Result) verdict {
	p.t.Helper()
	p.paces.spend(p.object, took, result.Overrun == nil)
	got := p.paces.judge(p.object, result, p.now)
	p.paces.move(p.object, got.slow)
	require.Equal(p.t, got.slow, p.paces.slow(client.ObjectKeyFromObject(p.object)))
	return got
}

var (
	quick    = &placement.Result{}
	costly   = &placement.Result{TotalCost: ExpensiveCost + 1}
	pending  = &placement.Result{Overrun: &placement.Overrun{}}
	hopeless = &placement.Result{Overrun: &placement.Overrun{Evaluations: true}}
)

func TestWhichPlacementsAreExpensive(t *testing.T) {
	p := newPaced(t)
	require.Equal(t, DefaultTurn, p.paces.turn(p.object, p.now))
	require.Equal(t, verdict{turn: TurnDone}, p.end(DefaultTurn, quick))
	require.Equal(t, verdict{turn: TurnDone, slow: true}, p.end(time.Millisecond, costly), "cost does not depend on the machine")
	require.Equal(t, verdict{turn: TurnDone}, p.end(time.Millisecond, quick))
	require.Equal(t, verdict{turn: TurnDone, slow: true}, p.end(DefaultTurn+1, quick))
	p.object.Generation++
	require.True(t, p.paces.slow(client.ObjectKeyFromObject(p.object)), "it is not known yet whether a change made it cheaper")
	require.Equal(t, verdict{turn: TurnDone}, p.end(time.Millisecond, quick))
}

func TestTurnsEnd(t *testing.T) {
	p := newPaced(t)
	for range 19 {
		require.Equal(t, DefaultTurn, p.paces.turn(p.object, p.now))
		require.Equal(t, verdict{turn: TurnContinued, slow: true}, p.end(DefaultTurn, pending))
	}
	require.Equal(t, verdict{turn: TurnFailed, delay: time.Second, slow: true}, p.end(DefaultTurn, pending), "twenty turns are five seconds")

	require.Zero(t, p.paces.turn(p.object, p.now))
	p.now = p.now.Add(400 * time.Millisecond)
	require.Equal(t, verdict{turn: TurnContinued, delay: 600 * time.Millisecond, slow: true}, p.end(0, pending), "it still waits")
	p.now = p.now.Add(600 * time.Millisecond)
	require.Equal(t, DefaultTurn, p.paces.turn(p.object, p.now))
	require.Equal(t, verdict{turn: TurnContinued, slow: true}, p.end(time.Second, pending))
	require.Equal(t, verdict{turn: TurnDone, slow: true}, p.end(time.Millisecond, quick), "all turns count")
	require.Equal(t, verdict{turn: TurnDone}, p.end(time.Millisecond, quick))
}

func TestTheLastTurnIsShorter(t *testing.T) {
	p := newPaced(t)
	p.end(placement.DefaultTimeout-time.Millisecond, pending)
	require.Equal(t, time.Millisecond, p.paces.turn(p.object, p.now))
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
	require.Zero(t, p.paces.turn(p.object, p.now))
	p.object.Generation++
	require.Equal(t, DefaultTurn, p.paces.turn(p.object, p.now), "who mends it need not wait")
	require.Equal(t, time.Second, p.end(time.Millisecond, hopeless).delay)
	p.now = p.now.Add(time.Second)
	p.end(time.Millisecond, quick)
	require.Equal(t, time.Second, p.end(time.Millisecond, hopeless).delay, "it was well in between")
}

// What was not decided, for example because it could not be written, says nothing.
func TestFailuresSayNothingOfTime(t *testing.T) {
	p := newPaced(t)
	for range 100 {
		p.paces.spend(p.object, 100*time.Millisecond, true)
		require.Equal(t, verdict{turn: TurnDone}, p.paces.judge(p.object, nil, p.now))
	}
	require.Equal(t, DefaultTurn, p.paces.turn(p.object, p.now))
	p.end(time.Millisecond, hopeless)
	p.paces.forget(client.ObjectKeyFromObject(p.object))
	require.Equal(t, newPaces(Timeouts{}).of, p.paces.of)
}
