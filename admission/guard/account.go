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

// Claim identifies a claim by namespace, name and UID.
type Claim struct {
	Namespace, Name string
	UID             types.UID
}

// entry has the possible allocations of one claim: the stored version that the guard saw last, and the admitted writes that may
// replace it. The API server stores exactly one of them at any moment.
type entry struct {
	Claim
	// version is the newest version that was seen, or empty. stored has the devices that are allocated in this version.
	version string
	stored  results
	// admitted has the unsettled writes. Each of them replaces the newest version that was seen, or a later version.
	admitted []admitted
}

// admitted is a write that the guard has admitted and that may be stored at any moment.
type admitted struct {
	// replaces is the version of the claim that the write replaces if it is stored.
	replaces string
	results  results
	at       time.Time
}

// each calls f for every allocated device that the claim may have. It calls f once if several possible allocations have the
// device.
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

// isBefore reports whether the stored version, or one of the first n admitted writes, also has the result.
func (e *entry) isBefore(n int, result *resourceapi.DeviceRequestAllocationResult) bool {
	same := func(other resourceapi.DeviceRequestAllocationResult) bool {
		return other.Device == result.Device && equality.Semantic.DeepEqual(&other, result)
	}
	if slices.ContainsFunc(e.stored, same) {
		return true
	}
	return slices.ContainsFunc(e.admitted[:n], func(write admitted) bool { return slices.ContainsFunc(write.results, same) })
}

// poolID identifies a pool.
type poolID struct{ driver, name string }

// account has all claims that may have devices, and for each device the claims that may have it.
type account struct {
	entries map[types.UID]*entry
	// holders maps a pool and a device to the claims that may have the device or a part of it. Devices without such claims are
	// absent.
	holders map[poolID]map[string]sets.Set[types.UID]
	// admitted is the number of admitted writes in all entries.
	admitted int
}

func newAccount() account {
	return account{entries: map[types.UID]*entry{}, holders: map[poolID]map[string]sets.Set[types.UID]{}}
}

// change applies a change to an entry and updates holders. It removes the entry if the entry becomes empty.
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

// see records a stored version of a claim. It reports whether the account changed.
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

// remove removes a claim. It reports whether the claim was present.
func (a *account) remove(uid types.UID) bool {
	e := a.entries[uid]
	if e == nil {
		return false
	}
	a.change(e, func() { e.stored, e.admitted = nil, nil })
	return true
}

// replace records a complete list of claims. A claim that is not in the list was deleted, unless it is newer than the list.
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

// admit records an admitted write.
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

// expire removes the admitted writes of a claim that are older than a time. It reports whether there were any.
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

// overdue returns at most the given number of claims that have writes admitted before the time.
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

// others returns the possible allocations of the given devices in the pool, without the claim whose UID is except.
func (a *account) others(except types.UID, pool poolID, devices []string) structured.AllocatedState {
	state := allocator.AllocatedTo(nil, allocator.CountingFeatures())
	holders := sets.New[types.UID]()
	wanted := sets.New(devices...)
	for device := range wanted {
		for uid := range a.holders[pool][device] {
			holders.Insert(uid)
		}
	}
	holders.Delete(except)
	for uid := range holders {
		a.entries[uid].each(func(r *resourceapi.DeviceRequestAllocationResult) {
			if r.Driver == pool.driver && r.Pool == pool.name && wanted.Has(r.Device) {
				allocator.AddAllocated(&state, results{*r}, allocator.CountingFeatures())
			}
		})
	}
	return state
}

// twice returns the number of devices that are allocated, as whole devices, in several stored claims.
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
