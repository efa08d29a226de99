// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Evicted records the eviction of a victim. inMemory is true for a pod that was not deleted but returned to the scheduling queue
// before its binding.
func (h *Holds) Evicted(of, victim types.UID, inMemory bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if held := h.byPod[of]; held != nil {
		held.evicted[victim] = inMemory
	}
}

// WasEvicted reports whether this process has evicted a victim of a hold. recently is false once informers must have delivered
// the deletion. inMemory is true for a pod that was not deleted.
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

// NoteFree records that the claims of a hold are free, and reports whether that was recorded before.
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

// MayResume reports whether failed evictions of a hold may be repeated now. If not, the pod is activated when they may.
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

// Tries returns the number of holds of a pod, and the time until pods may be evicted for it again.
func (h *Holds) Tries(pod types.UID) (count int, wait time.Duration) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	of := h.tries[pod]
	if of == nil {
		return 0, 0
	}
	return of.count, max(of.next.Sub(h.clock.Now()), 0)
}

// Join adds victims to a hold: pods that began to use claims of its victims, though not scheduled by this scheduler. It returns
// the changed hold. ok is false, and the hold is unchanged, if there are too many such pods.
func (h *Holds) Join(pod types.UID, joined []types.UID) (hold Hold, ok bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	held := h.byPod[pod]
	if held == nil || held.Joined+len(joined) > MaxJoined {
		return Hold{}, false
	}
	held.Joined += len(joined)
	// Copies of the hold share the slice, so it is copied.
	held.Victims = slices.Concat(held.Victims, joined)
	return held.Hold, true
}
