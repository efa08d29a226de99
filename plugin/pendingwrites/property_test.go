// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package pendingwrites

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

const (
	// claimCount is the number of claims at the start. nameCount is the maximum number of claims.
	claimCount  = 3
	nameCount   = 6
	deviceCount = 3
	// carriedOut is the maximum time from the sending of a request to its execution.
	carriedOut = time.Minute
)

// seen counts events. Each kind must happen at least once, otherwise the test would show nothing.
type seen struct {
	lost, late, moved, keptBack, caughtUp, unknown, contested, overtaken int
}

// world has claims that each need one of three devices, and a scheduler that allocates devices that seem free.
type world struct {
	*desk
	// follower has the claims that a second scheduler, which is not the leader, has received.
	follower *known
	t        *rapid.T
	seen     *seen
	sent     map[*resourceapi.ResourceClaim]time.Time
	// writing maps the name of a claim to the device of its write in progress, which upstream's plugin reserves.
	writing map[string]string
}

func newWorld(t *rapid.T, seen *seen) *world {
	w := &world{desk: newDesk(t), follower: newKnown(), t: t, seen: seen, sent: map[*resourceapi.ResourceClaim]time.Time{}, writing: map[string]string{}}
	for i := range claimCount {
		w.created(fmt.Sprint("claim-", i))
	}
	return w
}

func (w *world) anyClaim() string {
	return fmt.Sprint("claim-", rapid.IntRange(0, nameCount-1).Draw(w.t, "claim"))
}

// free returns the devices that seem free to the scheduler.
func (w *world) free(own *resourceapi.ResourceClaim) []string {
	taken := sets.New(w.from(own.UID)...)
	if taken.Len() > 0 {
		w.seen.keptBack++
	}
	taken = taken.Union(w.known.listed)
	for _, device := range w.writing {
		taken.Insert(device)
	}
	var free []string
	for i := range deviceCount {
		if name := fmt.Sprint(i); !taken.Has(name) {
			free = append(free, name)
		}
	}
	return free
}

func (w *world) schedule() {
	claim := w.known.claims[w.anyClaim()]
	if claim == nil || w.writing[claim.Name] != "" || claim.Status.Allocation != nil {
		return
	}
	w.allocate(claim)
}

// scheduleAnew creates a claim and allocates it before the watch delivers the claim. This happens with extended resources.
func (w *world) scheduleAnew() {
	if name := w.anyClaim(); w.stored[name] == nil && w.known.claims[name] == nil {
		w.allocate(w.create(name))
	}
}

func (w *world) allocate(claim *resourceapi.ResourceClaim) {
	free := w.free(claim)
	if len(free) == 0 {
		return
	}
	device := rapid.SampledFrom(free).Draw(w.t, "device")
	chosen := with(claim, device)
	if w.Check(chosen) != nil {
		w.seen.contested++
		return
	}
	how := fate(rapid.IntRange(0, int(fates)-1).Draw(w.t, "fate"))
	before := len(w.late)
	w.writing[claim.Name] = device
	defer delete(w.writing, claim.Name)
	w.distract()
	defer func() { w.meanwhile = nil }()
	got, err := w.writeAs(w.t.Context(), how, chosen)
	if err == nil {
		if w.known.AssumeClaimAfterAPICall(got) != nil {
			w.seen.unknown++
		}
		return
	}
	if len(w.late) > before {
		w.sent[w.late[before]] = w.clock.Now()
	}
	if how == answerLost {
		w.seen.lost++
	}
}

// carryOut executes one of the late requests.
func (w *world) carryOut() {
	if len(w.late) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.late)-1).Draw(w.t, "late")
	request := w.late[i]
	w.late = slices.Delete(w.late, i, i+1)
	if w.clock.Since(w.sent[request]) > carriedOut {
		return
	}
	if _, err := w.apply(request); err == nil {
		w.seen.late++
	}
}

// lead makes the other scheduler the leader. The former leader's late requests are never executed, because the lease and the
// double-allocation guard prevent that.
func (w *world) lead() {
	w.late = nil
	w.queue.ShutDown()
	w.known, w.follower = w.follower, newKnown()
	w.Writes = newWrites(w.t, w.client(), w.known, w.clock, func(Outcome) {})
	require.NoError(w.t, w.CatchUp(w.t.Context()))
	w.seen.caughtUp++
}

// distract makes random events happen before the next response arrives.
func (w *world) distract() {
	if w.meanwhile != nil || rapid.IntRange(0, 2).Draw(w.t, "late answer") > 0 {
		return
	}
	w.meanwhile = func() {
		w.seen.overtaken++
		for range rapid.IntRange(1, 4).Draw(w.t, "meanwhile") {
			switch rapid.IntRange(0, 3).Draw(w.t, "happens") {
			case 0:
				w.schedule()
			case 1:
				w.change()
			case 2:
				w.known.hear(w.server)
			case 3:
				w.carryOut()
			}
		}
	}
}

func (w *world) settleOne() {
	w.distract()
	defer func() { w.meanwhile = nil }()
	w.fences = rapid.SampledFrom([]fate{told, answerLost, requestLate, requestLate}).Draw(w.t, "fence")
	if claim := w.stored[w.anyClaim()]; claim != nil {
		_, _ = w.settle(w.t.Context(), claim.UID)
	}
}

// change changes, deallocates, deletes or creates a claim, as other clients do.
func (w *world) change() {
	name := w.anyClaim()
	claim := w.stored[name]
	if claim == nil {
		w.create(name)
		return
	}
	claim = claim.DeepCopy()
	switch rapid.SampledFrom([]string{"touch", "deallocate", "remove"}).Draw(w.t, "change") {
	case "deallocate":
		claim.Status.Allocation = nil
		w.store(claim)
	case "remove":
		w.remove(name)
	default:
		w.store(claim)
		w.seen.moved++
	}
}

func (w *world) check() {
	owner := map[string]string{}
	for name, claim := range w.stored {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, device := range namesOf(claim.Status.Allocation.Devices.Results) {
			if other, taken := owner[device]; taken {
				w.t.Fatalf("device %s is in %s and in %s", device, other, name)
			}
			owner[device] = name
		}
	}
}

// TestNoDeviceTwice checks that no two claims have the same device, even if requests and events are lost, late or refused.
func TestNoDeviceTwice(t *testing.T) {
	var all seen
	cases.CheckN(t, cases.Of(500, 5000), func(t *rapid.T) {
		w := newWorld(t, &all)
		t.Repeat(map[string]func(*rapid.T){
			"schedule":       func(*rapid.T) { w.schedule() },
			"schedule again": func(*rapid.T) { w.schedule() },
			"carry out":      func(*rapid.T) { w.carryOut() },
			"schedule anew":  func(*rapid.T) { w.scheduleAnew() },
			"hear":           func(*rapid.T) { w.known.hear(w.server) },
			"relist":         func(*rapid.T) { w.known.relist(w.server) },
			"follow":         func(*rapid.T) { w.follower.hear(w.server) },
			"follow anew":    func(*rapid.T) { w.follower.relist(w.server) },
			"settle":         func(*rapid.T) { w.settleOne() },
			"change":         func(*rapid.T) { w.change() },
			"wait": func(t *rapid.T) {
				w.clock.Step(time.Duration(rapid.IntRange(1, 60).Draw(t, "seconds")) * time.Second)
			},
			"lead": func(*rapid.T) { w.lead() },
			"":     func(*rapid.T) { w.check() },
		})
	})
	t.Logf("%+v", all)
	require.Positive(t, all.lost)
	require.Positive(t, all.late)
	require.Positive(t, all.moved)
	require.Positive(t, all.keptBack)
	require.Positive(t, all.caughtUp)
	require.Positive(t, all.unknown)
	require.Positive(t, all.overtaken)
}
