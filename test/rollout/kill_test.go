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
	// killsPerRound is the number of schedulers that are killed in a round. After them, a scheduler finishes the work of the
	// round.
	killsPerRound = 4

	// feedPeriod is the time after which new pods are created if the scheduler has not yet reached the write at which it is
	// killed.
	feedPeriod = 500 * time.Millisecond
)

// points returns the points before and after each write of an allocation.
func points() []point {
	var points []point
	for _, w := range []write{addFinalizer, allocate, bind, setCondition, createClaim, unreserve, deleteClaim} {
		points = append(points, point{w, before}, point{w, after})
	}
	return points
}

// TestKilledAtEveryWrite kills schedulers one after the other, each before or after a write. Meanwhile the test creates and
// deletes pods of all kinds, which need more devices than exist. A device must never be in two claims. The last scheduler,
// which is not killed, must finish the work of the killed ones: no claim is lost, and no pod waits while devices for it are
// available.
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

// churn deletes random pods, and creates pods of each kind. The new pods together need about twice as many devices as exist.
func (w *workload) churn(t *testing.T, random *rand.Rand) {
	t.Helper()
	batch := []*kind{ringKind, ringKind, pairKind, blockKind, blockKind, plainKind, stockKind, extendedKind, extendedKind, extendedKind}
	random.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
	w.deleteUntil(t, random, len(batch)/2)
	w.add(t, batch...)
}

// feedUntil creates and deletes pods until the scheduler reaches the write at which it is killed.
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

// table formats the points at which schedulers were killed, and how often.
func table(killed map[point]int) string {
	var lines []string
	for _, p := range points() {
		lines = append(lines, fmt.Sprintf("%4d %-6s %s", killed[p], p.side, p.write))
	}
	return strings.Join(lines, "\n")
}
