// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
)

type results = []resourceapi.DeviceRequestAllocationResult

// Claim names a claim.
type Claim struct {
	Namespace, Name string
	UID             types.UID
}

// entry is what is known of a claim that has devices, or may get some any moment. One of its alternatives is
// stored: what was seen, or one of the writes that were admitted.
type entry struct {
	Claim
	// version is the newest that was seen, empty if none was, and stored what it has.
	version string
	stored  results
	// admitted are not settled: none replaces a version before the newest that was seen.
	admitted []admitted
}

// admitted is a write that was admitted.
type admitted struct {
	// replaces is the version of the claim that it replaces.
	replaces string
	results  results
	at       time.Time
}

// each calls f for all that the claim may have. What is the same in several alternatives counts once.
func (e *entry) each(f func(*resourceapi.DeviceRequestAllocationResult)) {
	for i := range e.stored {
		f(&e.stored[i])
	}
	for n, write := range e.admitted {
		for i := range write.results {
			if !e.isBefore(n, &write.results[i]) {
				f(&write.results[i])
			}
		}
	}
}

// isBefore tells whether a result of the nth admitted write is one of an alternative before that.
func (e *entry) isBefore(n int, result *resourceapi.DeviceRequestAllocationResult) bool {
	same := func(other resourceapi.DeviceRequestAllocationResult) bool {
		return other.Device == result.Device && equality.Semantic.DeepEqual(&other, result)
	}
	if slices.ContainsFunc(e.stored, same) {
		return true
	}
	return slices.ContainsFunc(e.admitted[:n], func(write admitted) bool { return slices.ContainsFunc(write.results, same) })
}

// poolID names a pool.
type poolID struct{ driver, name string }

// account knows who may have which device. A device is in it as long as somebody may have it.
type account struct {
	entries map[types.UID]*entry
	// holders are those who may have something of a device, by pool and device.
	holders map[poolID]map[string]sets.Set[types.UID]
	// admitted is the number of writes in all entries.
	admitted int
}

func newAccount() account {
	return account{entries: map[types.UID]*entry{}, holders: map[poolID]map[string]sets.Set[types.UID]{}}
}

// change changes an entry, and drops it if nothing is left of it.
func (a *account) change(e *entry, change func()) {
	e.each(func(r *resourceapi.DeviceRequestAllocationResult) { a.unlink(e.UID, r) })
	before := len(e.admitted)
	change()
	a.admitted += len(e.admitted) - before
	if len(e.stored) == 0 && len(e.admitted) == 0 {
		delete(a.entries, e.UID)
		return
	}
	a.entries[e.UID] = e
	e.each(func(r *resourceapi.DeviceRequestAllocationResult) { a.link(e.UID, r) })
}

func (a *account) link(uid types.UID, r *resourceapi.DeviceRequestAllocationResult) {
	if ptr.Deref(r.AdminAccess, false) {
		return
	}
	pool := poolID{r.Driver, r.Pool}
	if a.holders[pool] == nil {
		a.holders[pool] = map[string]sets.Set[types.UID]{}
	}
	if a.holders[pool][r.Device] == nil {
		a.holders[pool][r.Device] = sets.New[types.UID]()
	}
	a.holders[pool][r.Device].Insert(uid)
}

func (a *account) unlink(uid types.UID, r *resourceapi.DeviceRequestAllocationResult) {
	pool := poolID{r.Driver, r.Pool}
	devices := a.holders[pool]
	devices[r.Device].Delete(uid)
	if len(devices[r.Device]) == 0 {
		delete(devices, r.Device)
	}
	if len(devices) == 0 {
		delete(a.holders, pool)
	}
}

// see takes a version of a claim and tells whether it is news.
func (a *account) see(claim *resourceapi.ResourceClaim) bool {
	e := a.entries[claim.UID]
	if e == nil {
		if claim.Status.Allocation == nil {
			return false
		}
		e = &entry{Claim: Claim{claim.Namespace, claim.Name, claim.UID}}
	}
	if !isNewer(claim.ResourceVersion, e.version) {
		return false
	}
	a.change(e, func() {
		e.version, e.stored = claim.ResourceVersion, nil
		if claim.Status.Allocation != nil {
			e.stored = claim.Status.Allocation.Devices.Results
		}
		e.admitted = slices.DeleteFunc(e.admitted, func(write admitted) bool { return isNewer(e.version, write.replaces) })
	})
	return true
}

// remove forgets a claim and tells whether that is news.
func (a *account) remove(uid types.UID) bool {
	e := a.entries[uid]
	if e == nil {
		return false
	}
	a.change(e, func() { e.stored, e.admitted = nil, nil })
	return true
}

// replace takes all claims that there were at a version. A claim that is not among them is gone if it had been
// created by then.
func (a *account) replace(claims []*resourceapi.ResourceClaim, version string) {
	there := sets.New[types.UID]()
	for _, claim := range claims {
		there.Insert(claim.UID)
		a.see(claim)
	}
	for uid, e := range a.entries {
		if there.Has(uid) {
			continue
		}
		a.change(e, func() {
			if isUpTo(e.version, version) {
				e.stored = nil
			}
			e.admitted = slices.DeleteFunc(e.admitted, func(write admitted) bool { return isUpTo(write.replaces, version) })
		})
	}
}

// admit records a write.
func (a *account) admit(w *Write, at time.Time) {
	e := a.entries[w.UID]
	if e == nil {
		e = &entry{Claim: w.Claim}
	}
	for i := range e.admitted {
		if known := &e.admitted[i]; known.replaces == w.Replaces && equality.Semantic.DeepEqual(known.results, w.Results) {
			known.at = at
			return
		}
	}
	a.change(e, func() { e.admitted = append(e.admitted, admitted{w.Replaces, w.Results, at}) })
}

// expire forgets the writes of a claim that were admitted before some time and tells whether there were any.
func (a *account) expire(uid types.UID, before time.Time) bool {
	e := a.entries[uid]
	if e == nil || !e.isOverdue(before) {
		return false
	}
	a.change(e, func() {
		e.admitted = slices.DeleteFunc(e.admitted, func(write admitted) bool { return write.at.Before(before) })
	})
	return true
}

func (e *entry) isOverdue(before time.Time) bool {
	return slices.ContainsFunc(e.admitted, func(write admitted) bool { return write.at.Before(before) })
}

// overdue are claims with writes that were admitted before some time.
func (a *account) overdue(before time.Time, most int) []Claim {
	var overdue []Claim
	if a.admitted == 0 {
		return nil
	}
	for _, e := range a.entries {
		if len(overdue) == most {
			break
		}
		if e.isOverdue(before) {
			overdue = append(overdue, e.Claim)
		}
	}
	return overdue
}

// others is what all claims but one may have of some devices of a pool.
func (a *account) others(but types.UID, pool poolID, devices []string) structured.AllocatedState {
	state := allocator.AllocatedTo(nil, allocator.CountingFeatures())
	holders := sets.New[types.UID]()
	wanted := sets.New(devices...)
	for device := range wanted {
		for uid := range a.holders[pool][device] {
			holders.Insert(uid)
		}
	}
	holders.Delete(but)
	for uid := range holders {
		a.entries[uid].each(func(r *resourceapi.DeviceRequestAllocationResult) {
			if r.Driver == pool.driver && r.Pool == pool.name && wanted.Has(r.Device) {
				allocator.AddAllocated(&state, results{*r}, allocator.CountingFeatures())
			}
		})
	}
	return state
}

// twice is the number of devices that are stored as whole devices of several claims.
func (a *account) twice() int {
	count := 0
	for pool, devices := range a.holders {
		for device, holders := range devices {
			if len(holders) < 2 {
				continue
			}
			owners := 0
			for uid := range holders {
				if slices.ContainsFunc(a.entries[uid].stored, func(r resourceapi.DeviceRequestAllocationResult) bool {
					return r.Driver == pool.driver && r.Pool == pool.name && r.Device == device && r.ShareID == nil && !ptr.Deref(r.AdminAccess, false)
				}) {
					owners++
				}
			}
			if owners > 1 {
				count++
			}
		}
	}
	return count
}
