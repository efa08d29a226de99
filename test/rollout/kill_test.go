// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/internal/env"
)

const (
	// killsPerRound is the number of schedulers killed during the same work, before one may finish it.
	killsPerRound = 4

	// feedPeriod is the time that a scheduler may take to reach the point of its death before it gets more work.
	feedPeriod = 500 * time.Millisecond
)

// points returns all writes of an allocation, with both sides.
func points() []point {
	var points []point
	for _, w := range []write{addFinalizer, allocate, bind, setCondition, createClaim, unreserve, deleteClaim} {
		points = append(points, point{w, before}, point{w, after})
	}
	return points
}

// TestKilledAtEveryWrite kills one scheduler after the other before or after a write, while pods of all kinds come and go that
// want more devices than exist. A device must never have two claims. A scheduler that is not killed must finish what the dead
// ones began: no claim is lost, and no pod waits for available devices.
func TestKilledAtEveryWrite(t *testing.T) {
	n := cases.Of(20, 200)
	w := newWorkload(t, "kill", 2)
	random := rand.New(rand.NewPCG(1, 2))
	killed := map[point]int{}
	points := points()
	at := func(i int) (point, int) { return points[i%len(points)], 1 + i/len(points)%2 }

	began := time.Now()
	s := start(t, w.openGate(t), enabled())
	var sprung *trap
	for i := range n {
		p, nth := at(i)
		if i%killsPerRound == 0 {
			w.requireSettled(t)
			w.deleteFreed(t)
			sprung = s.gate.arm(p, nth)
			w.churn(t, random)
		}
		w.feedUntil(t, sprung, random)
		s.kill()
		killed[p]++
		g := w.openGate(t)
		if (i+1)%killsPerRound != 0 && i+1 < n {
			sprung = g.arm(at(i + 1))
		}
		s = start(t, g, enabled())
	}
	w.requireSettled(t)
	entries := w.ledger.Entries()
	t.Logf("%d kills in %s, %d versions of claims, %d allocations\n%s",
		n, time.Since(began).Round(time.Second), entries.Events, entries.Allocations, table(killed))
	for _, p := range points {
		require.NotZero(t, killed[p], p)
	}

	t.Log("all pods go, and all devices are free")
	w.deleteUntil(t, random, 0)
	w.requireSettled(t)
	w.deleteFreed(t)
	require.Empty(t, w.requireSettled(t))
	whole := []*kind{blockKind, blockKind}
	for range w.nodes {
		whole = append(whole, ringKind, ringKind)
	}
	w.requireBound(t, w.add(t, whole...)...)
}

// churn deletes some pods in any state and creates others: at least one of each kind, together for about twice as many devices as
// exist.
func (w *workload) churn(t *testing.T, random *rand.Rand) {
	t.Helper()
	batch := []*kind{ringKind, ringKind, pairKind, blockKind, blockKind, plainKind, stockKind, extendedKind, extendedKind, extendedKind}
	random.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
	w.deleteUntil(t, random, len(batch)/2)
	w.add(t, batch...)
}

// feedUntil gives the scheduler work until it reaches the point of its death.
func (w *workload) feedUntil(t *testing.T, trap *trap, random *rand.Rand) {
	t.Helper()
	deadline := time.After(env.Patience)
	for {
		select {
		case <-trap.sprung:
			return
		case <-time.After(feedPeriod):
			w.churn(t, random)
		case <-deadline:
			t.Fatalf("the scheduler does not come to %v", trap.point)
		}
	}
}

// table formats the points at which the schedulers died.
func table(killed map[point]int) string {
	var lines []string
	for _, p := range points() {
		lines = append(lines, fmt.Sprintf("%4d %-6s %s", killed[p], p.side, p.write))
	}
	return strings.Join(lines, "\n")
}
