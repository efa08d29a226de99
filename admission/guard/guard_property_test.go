// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// outcome is the result of running a random history of events.
type outcome struct {
	// violation is the first device that was allocated twice.
	violation string
	// wrong describes the first wrong verdict of the Guard after all delays had ended.
	wrong string
	// history lists the steps of the history, one per line.
	history string
	// admitted, refused and stored count writes.
	admitted, refused, stored int
}

// histories draws random histories. Writes fit or conflict, and are stored, fail or arrive late. Claims are changed,
// deallocated and deleted. The Guard sees changes late, gets lists, fails to read, or is replaced by a new Guard.
func histories(f faults) *rapid.Generator[outcome] {
	return rapid.Custom(func(t *rapid.T) outcome {
		w, ctx, o := newWorld(f), context.Background(), outcome{}
		if rapid.Bool().Draw(t, "slices were seen") {
			w.guard.ReplaceSlices(published())
		}
		for range rapid.IntRange(5, 60).Draw(t, "steps") {
			w.step(ctx, t, &o)
			if o.violation = overlap(w.allocated()); o.violation != "" {
				o.history = strings.Join(w.history, "\n")
				return o
			}
		}
		o.wrong = w.answersRight(ctx, t)
		o.history = strings.Join(w.history, "\n")
		return o
	})
}

func (w *world) step(ctx context.Context, t *rapid.T, o *outcome) {
	uids := slices.Sorted(maps.Keys(w.claims))
	kind := rapid.IntRange(0, 19).Draw(t, "step")
	if len(uids) == 0 || kind == 0 {
		w.made++
		w.put(types.UID(fmt.Sprintf("claim-%d", w.made)), func(*resourceapi.ResourceClaim) {})
		return
	}
	uid := rapid.SampledFrom(uids).Draw(t, "claim")
	switch kind {
	case 1, 2, 3, 4, 5, 6:
		if refusal := w.ask(ctx, uid, w.claims[uid].ResourceVersion, w.drawResults(t)); refusal != nil {
			o.refused++
		} else {
			o.admitted++
		}
	case 7, 8, 9, 10:
		if len(w.writes) > 0 {
			before := w.version
			w.store(rapid.IntRange(0, len(w.writes)-1).Draw(t, "stored"))
			o.stored += w.version - before
		}
	case 11:
		if len(w.writes) > 0 {
			n := rapid.IntRange(0, len(w.writes)-1).Draw(t, "failed")
			w.writes = slices.Delete(w.writes, n, n+1)
		}
	case 12:
		w.put(uid, func(*resourceapi.ResourceClaim) {})
	case 13:
		w.put(uid, func(c *resourceapi.ResourceClaim) { c.Status.Allocation = nil })
	case 14:
		w.delete(uid)
	case 15, 16:
		w.hear(rapid.IntRange(1, 5).Draw(t, "events"))
	case 17:
		w.list(rapid.IntRange(w.heard, len(w.events)).Draw(t, "listed"))
	case 18:
		w.pass(time.Duration(rapid.IntRange(1, 40).Draw(t, "seconds")) * time.Second)
		_ = w.guard.Settle(ctx, 3)
		w.unreachable = rapid.IntRange(0, 3).Draw(t, "unreachable") == 0
	case 19:
		w.takeOver()
	}
}

// answersRight asks the Guard about a random write after all delays have ended. The Guard must admit the write if and only if
// it fits.
func (w *world) answersRight(ctx context.Context, t *rapid.T) string {
	if err := w.settle(ctx); err != nil {
		return err.Error()
	}
	if counts := w.guard.Counts(); counts.Admitted != 0 {
		return fmt.Sprintf("%d writes are not settled", counts.Admitted)
	}
	w.put("last", func(*resourceapi.ResourceClaim) {})
	devices := w.drawResults(t)
	want := overlap(append(w.allocated(), devices...))
	if got := w.ask(ctx, "last", w.claims["last"].ResourceVersion, devices); (got == nil) != (want == "") {
		return fmt.Sprintf("%v beside %v: want %q, got %+v", devices, w.allocated(), want, got)
	}
	return ""
}

// TestNoDeviceIsGivenAwayTwice tests that no device is allocated twice, even if requests fail or are delayed. If nothing is
// delayed, the Guard must admit every write that fits.
func TestNoDeviceIsGivenAwayTwice(t *testing.T) {
	var sum outcome
	cases.Until(t, cases.Of(50, 1000), func() bool { return sum.refused > 0 && sum.stored > 0 }, func(t *rapid.T) {
		o := histories(faults{}).Draw(t, "history")
		require.Empty(t, o.violation, "%s", o.history)
		require.Empty(t, o.wrong, "%s", o.history)
		sum.admitted, sum.refused, sum.stored = sum.admitted+o.admitted, sum.refused+o.refused, sum.stored+o.stored
	})
	t.Logf("%d writes were admitted, %d refused, %d stored", sum.admitted, sum.refused, sum.stored)
}

// TestPlantedFaultsAreFound tests the histories: for each fault in the Guard, some history must allocate a device twice.
func TestPlantedFaultsAreFound(t *testing.T) {
	for name, f := range map[string]faults{
		"what was admitted is not remembered":           {unrecorded: true},
		"takes over at once":                            {hasty: true},
		"forgets what the API server has not ended yet": {impatient: true},
	} {
		t.Run(name, func(t *testing.T) {
			all := histories(f)
			for seed := range 20_000 {
				if o := all.Example(seed); o.violation != "" {
					t.Logf("history %d: %s\n%s", seed, o.violation, o.history)
					return
				}
			}
			t.Fatal("no device was given away twice")
		})
	}
}
