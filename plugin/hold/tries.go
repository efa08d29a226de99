// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Evicted records that victim was evicted for the pod whose UID is of. inMemory is true if the victim was not deleted: it was
// not bound yet, and returned to the scheduling queue.
func (h *Holds) Evicted(of, victim types.UID, inMemory bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if held := h.byPod[of]; held != nil {
		held.evicted[victim] = inMemory
	}
}

// WasEvicted reports whether this process has evicted a victim of a hold. recently is true as long as informers may not have
// delivered the deletion. inMemory is true if the victim was not deleted but returned to the scheduling queue.
func (h *Holds) WasEvicted(of, victim types.UID) (recently, inMemory bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	held := h.byPod[of]
	if held == nil {
		return false, false
	}
	inMemory, evicted := held.evicted[victim]
	return evicted && h.clock.Since(held.since) < untilKnown, inMemory
}

// NoteFree records that all claims to be freed for a pod are free. It reports whether this was recorded before.
func (h *Holds) NoteFree(pod types.UID) (before bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	held := h.byPod[pod]
	if held == nil {
		return true
	}
	before, held.wereFree = held.wereFree, true
	return before
}

// MayResume reports whether failed evictions of a hold may be repeated now. If not, the pod is activated when they may be
// repeated.
func (h *Holds) MayResume(pod types.UID) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	held := h.byPod[pod]
	if held == nil {
		return false
	}
	now := h.clock.Now()
	if held.resumes > 0 {
		next := held.resumed.Add(min(firstResume<<min(held.resumes-1, 16), lastResume))
		if now.Before(next) {
			if held.Retry != nil {
				held.retry.Stop()
				held.retry = h.clock.AfterFunc(next.Sub(now), held.Retry)
			}
			return false
		}
	}
	held.resumes++
	held.resumed = now
	return true
}

// Tries returns how many holds of a pod count as tries, and the time until pods may be evicted for the pod again.
func (h *Holds) Tries(pod types.UID) (count int, wait time.Duration) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	of := h.tries[pod]
	if of == nil {
		return 0, 0
	}
	return of.count, max(of.next.Sub(h.clock.Now()), 0)
}

// Join adds victims to a hold: pods that another scheduler placed and that use claims of the hold's victims. It returns the
// changed hold. If there are too many such pods, ok is false and the hold is unchanged.
func (h *Holds) Join(pod types.UID, joined []types.UID) (hold Hold, ok bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	held := h.byPod[pod]
	if held == nil || held.Joined+len(joined) > MaxJoined {
		return Hold{}, false
	}
	held.Joined += len(joined)
	// Copies of the hold share the old slice, so append could change them.
	held.Victims = slices.Concat(held.Victims, joined)
	return held.Hold, true
}
