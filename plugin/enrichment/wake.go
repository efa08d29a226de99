// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package enrichment

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// wakeRest is the minimum time between two calls of the functions that retry waiting pods. Pods are retried without their back-off,
// so a driver that publishes again and again must not cause a retry each time.
const wakeRest = time.Second

// wakers are the functions that retry waiting pods. The zero wakers are ready to use.
type wakers struct {
	mutex sync.Mutex
	all   []func(drivers sets.Set[string])
	// changed has the drivers whose devices have changed attributes since the last call of wake, at the time last.
	changed sets.Set[string]
	last    time.Time
}

func (w *wakers) add(wake func(drivers sets.Set[string])) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.all = append(w.all, wake)
}

func (w *wakers) note(drivers sets.Set[string]) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.changed = w.changed.Union(drivers)
}

// wake calls the functions if devices have changed, unless the last call was a short time ago. It returns the time until it must
// be called again.
func (w *wakers) wake(now time.Time) time.Duration {
	w.mutex.Lock()
	if len(w.changed) == 0 {
		w.mutex.Unlock()
		return recheck
	}
	if left := wakeRest - now.Sub(w.last); left > 0 && !w.last.IsZero() {
		w.mutex.Unlock()
		return left
	}
	drivers, all := w.changed, slices.Clone(w.all)
	w.changed, w.last = nil, now
	w.mutex.Unlock()
	for _, wake := range all {
		wake(drivers)
	}
	return recheck
}
