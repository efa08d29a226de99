// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

const (
	driver = "gpu.example.com"
	// requestTime is the maximum time from the admission of a write until the API server has stored it.
	requestTime = 34 * time.Second
	memory      = "memory"
	perDevice   = 10
	perChip     = 4
)

// parts maps each device of the pool "parts" to the amount of the chip's memory that the device takes.
var parts = map[string]int64{"whole": 4, "half-0": 2, "half-1": 2, "quarter-0": 1, "quarter-1": 1}

func slice(pool, name string, count int64, edit func(*resourceapi.ResourceSliceSpec)) *resourceapi.ResourceSlice {
	s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: pool + "-" + name}, Spec: resourceapi.ResourceSliceSpec{
		Driver: driver, AllNodes: ptr.To(true), Pool: resourceapi.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: count},
	}}
	edit(&s.Spec)
	return s
}

// published returns three pools: one with whole devices, one with shared devices that have memory, and one with partitions of a
// chip.
func published() []*resourceapi.ResourceSlice {
	return []*resourceapi.ResourceSlice{
		slice("plain", "1", 1, func(s *resourceapi.ResourceSliceSpec) {
			s.Devices = []resourceapi.Device{{Name: "0"}, {Name: "1"}, {Name: "2"}}
		}),
		slice("shared", "1", 1, func(s *resourceapi.ResourceSliceSpec) {
			for _, name := range []string{"0", "1"} {
				s.Devices = append(s.Devices, resourceapi.Device{
					Name: name, AllowMultipleAllocations: ptr.To(true),
					Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{memory: {Value: amount(perDevice)}},
				})
			}
		}),
		slice("parts", "chips", 2, func(s *resourceapi.ResourceSliceSpec) {
			s.SharedCounters = []resourceapi.CounterSet{{Name: "chip", Counters: map[string]resourceapi.Counter{memory: {Value: amount(perChip)}}}}
		}),
		slice("parts", "devices", 2, func(s *resourceapi.ResourceSliceSpec) {
			for _, name := range slices.Sorted(maps.Keys(parts)) {
				s.Devices = append(s.Devices, resourceapi.Device{Name: name, ConsumesCounters: []resourceapi.DeviceCounterConsumption{{
					CounterSet: "chip", Counters: map[string]resourceapi.Counter{memory: {Value: amount(parts[name])}},
				}}})
			}
		}),
	}
}

func result(pool, device string) resourceapi.DeviceRequestAllocationResult {
	return resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: driver, Pool: pool, Device: device}
}

func amount(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }

func share(device string, consumed int64, id int) resourceapi.DeviceRequestAllocationResult {
	r := result("shared", device)
	r.ShareID = ptr.To(types.UID("share-" + strconv.Itoa(id)))
	r.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{memory: amount(consumed)}
	return r
}

func admin(r resourceapi.DeviceRequestAllocationResult) resourceapi.DeviceRequestAllocationResult {
	r.AdminAccess = ptr.To(true)
	return r
}

func names(all results) string {
	var parts []string
	for _, r := range all {
		amount := r.ConsumedCapacity[memory]
		parts = append(parts, fmt.Sprintf("%s/%s (share %t of %s, admin %t)", r.Pool, r.Device, r.ShareID != nil, amount.String(), ptr.Deref(r.AdminAccess, false)))
	}
	return strings.Join(parts, ", ")
}

// overlap returns the first conflict in the results, or "". To be independent, it does not use the allocator.
func overlap(all results) string {
	whole, shares, consumed, chip := map[string]int{}, map[string]int{}, map[string]int64{}, int64(0)
	for _, r := range all {
		device := r.Pool + "/" + r.Device
		switch {
		case ptr.Deref(r.AdminAccess, false):
		case r.ShareID != nil:
			amount := r.ConsumedCapacity[memory]
			shares[device]++
			consumed[device] += amount.Value()
		default:
			whole[device]++
			if r.Pool == "parts" {
				chip += parts[r.Device]
			}
		}
	}
	for device, n := range whole {
		if n > 1 || shares[device] > 0 {
			return fmt.Sprintf("%s is given away %d times, and %d shares of it", device, n, shares[device])
		}
	}
	for device, amount := range consumed {
		if amount > perDevice {
			return fmt.Sprintf("%d of %s are given away", amount, device)
		}
	}
	if chip > perChip {
		return fmt.Sprintf("%d of the chip are given away", chip)
	}
	return ""
}

// world is a model of an API server with claims and a Guard.
type world struct {
	now     time.Time
	version int
	claims  map[types.UID]*resourceapi.ResourceClaim
	// events has all versions of claims in order. heard is the number of events that the Guard has received.
	events []event
	heard  int
	// writes has the admitted writes that the API server has neither stored nor given up yet.
	writes []write
	// unreachable means that reads from the API server fail.
	unreachable bool
	made        int
	guard       *Guard
	faults      faults
	// history lists the steps as text.
	history []string
}

func (w *world) note(format string, args ...any) {
	w.history = append(w.history, fmt.Sprintf(format, args...))
}

// faults are mistakes that a test builds into the Guard.
type faults struct {
	// unrecorded means that the Guard does not record the writes that it admits.
	unrecorded bool
	// hasty means that a new Guard judges before the writes that its predecessor admitted are settled.
	hasty bool
	// impatient means that the Guard's Grace is shorter than requests may take.
	impatient bool
}

// event is a new version of a claim. gone means that the claim was deleted.
type event struct {
	claim *resourceapi.ResourceClaim
	gone  bool
}

type write struct {
	uid      types.UID
	replaces string
	results  results
	at       time.Time
}

func newWorld(f faults) *world {
	w := &world{now: time.Unix(0, 0), claims: map[types.UID]*resourceapi.ResourceClaim{}, faults: f}
	w.guard = w.newGuard()
	return w
}

func (w *world) newGuard() *Guard {
	grace := requestTime + time.Second
	if w.faults.impatient {
		grace = time.Second
	}
	return New(Options{Live: w, Grace: grace, Now: func() time.Time { return w.now }})
}

// Claim implements Live.
func (w *world) Claim(_ context.Context, _, name string) (*resourceapi.ResourceClaim, error) {
	if w.unreachable {
		return nil, errors.New("unreachable")
	}
	return w.claims[types.UID(name)], nil
}

// Slices implements Live.
func (w *world) Slices(context.Context, string) ([]*resourceapi.ResourceSlice, error) {
	if w.unreachable {
		return nil, errors.New("unreachable")
	}
	return published(), nil
}

// put stores a new version of a claim. change modifies a copy of the previous version.
func (w *world) put(uid types.UID, change func(*resourceapi.ResourceClaim)) {
	w.version++
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: string(uid), UID: uid}}
	if former := w.claims[uid]; former != nil {
		claim = former.DeepCopy()
	}
	claim.ResourceVersion = strconv.Itoa(w.version)
	change(claim)
	w.claims[uid] = claim
	w.note("%s has version %d", uid, w.version)
	w.events = append(w.events, event{claim: claim})
}

func (w *world) delete(uid types.UID) {
	w.version++
	w.note("%s is deleted", uid)
	w.events = append(w.events, event{claim: w.claims[uid], gone: true})
	delete(w.claims, uid)
}

// store lets the API server store the nth pending write, if the claim still has the version that the write replaces.
func (w *world) store(n int) {
	one := w.writes[n]
	w.note("%s is to be stored with %s in place of version %s", one.uid, names(one.results), one.replaces)
	w.writes = slices.Delete(w.writes, n, n+1)
	if claim := w.claims[one.uid]; claim != nil && claim.ResourceVersion == one.replaces {
		w.put(one.uid, func(c *resourceapi.ResourceClaim) {
			c.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: one.results}}
		})
	}
}

// allocated returns the devices in all stored claims.
func (w *world) allocated() results {
	var all results
	for _, claim := range w.claims {
		if claim.Status.Allocation != nil {
			all = append(all, claim.Status.Allocation.Devices.Results...)
		}
	}
	return all
}

// hear passes the next n events to the Guard, as a watch does.
func (w *world) hear(n int) {
	for _, e := range w.events[w.heard:min(w.heard+n, len(w.events))] {
		w.heard++
		w.note("the guard hears of version %d", w.heard)
		if e.gone {
			w.guard.Gone(e.claim.UID)
		} else {
			w.guard.See(e.claim)
		}
	}
}

// list passes the claims as they were after event number at to the Guard. A stale cache may return such an old list.
func (w *world) list(at int) {
	claims, version := map[types.UID]*resourceapi.ResourceClaim{}, "0"
	for i, e := range w.events[:at] {
		version = strconv.Itoa(i + 1)
		if claims[e.claim.UID] = e.claim; e.gone {
			delete(claims, e.claim.UID)
		}
	}
	w.guard.ReplaceClaims(slices.Collect(maps.Values(claims)), version)
	w.heard = at
	w.note("the guard lists version %s", version)
}

// pass advances the clock. The API server gives up writes that take too long.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	w.note("%s pass", d)
	w.writes = slices.DeleteFunc(w.writes, func(one write) bool { return w.now.Sub(one.at) > requestTime })
}

// takeOver replaces the Guard by a new one, as after an election.
func (w *world) takeOver() {
	if !w.faults.hasty {
		w.pass(requestTime + time.Second)
	}
	w.guard = w.newGuard()
	w.note("another guard takes over")
	w.list(len(w.events))
}

// ask asks the Guard about a write, as the API server does.
func (w *world) ask(ctx context.Context, uid types.UID, replaces string, devices results) *Refusal {
	refusal := w.guard.Judge(ctx, &Write{
		Claim: Claim{Namespace: "default", Name: string(uid), UID: uid}, Replaces: replaces, Results: devices, DryRun: w.faults.unrecorded,
	})
	w.note("%s asks for %s in place of version %s: %+v", uid, names(devices), replaces, refusal)
	if refusal == nil {
		w.writes = append(w.writes, write{uid, replaces, devices, w.now})
	}
	return refusal
}

// settle ends all delays: it stores the pending writes, passes all events to the Guard, and lets the Guard settle.
func (w *world) settle(ctx context.Context) error {
	w.unreachable = false
	for len(w.writes) > 0 {
		w.store(0)
	}
	w.hear(len(w.events))
	w.guard.ReplaceSlices(published())
	w.pass(2 * requestTime)
	return w.guard.Settle(ctx, 1000)
}

// drawResults draws devices for a claim. They may be free or not.
func (w *world) drawResults(t *rapid.T) results {
	var drawn results
	for range rapid.IntRange(1, 2).Draw(t, "devices") {
		w.made++
		var r resourceapi.DeviceRequestAllocationResult
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0, 1:
			r = result("plain", rapid.SampledFrom([]string{"0", "1", "2"}).Draw(t, "device"))
		case 2, 3:
			r = share(rapid.SampledFrom([]string{"0", "1"}).Draw(t, "device"), rapid.Int64Range(0, perDevice+1).Draw(t, "amount"), w.made)
		case 4:
			r = result("shared", rapid.SampledFrom([]string{"0", "1"}).Draw(t, "device"))
		default:
			r = result("parts", rapid.SampledFrom(slices.Sorted(maps.Keys(parts))).Draw(t, "device"))
		}
		if rapid.IntRange(0, 9).Draw(t, "admin") == 0 {
			r = admin(r)
		}
		drawn = append(drawn, r)
	}
	return drawn
}
