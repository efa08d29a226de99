// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// samePause is the time between activations of two pods of one claim. The attempt of the first pod may cause another back-off of
// the claim.
const samePause = 250 * time.Millisecond

// putOff holds the pods whose claims back off. Deleted pods are removed.
type putOff struct {
	backingOff map[types.UID]*backingOff
	// next is a time at or before the first end of a back-off.
	next time.Time
	// activated maps a claim to the last activation of one of its pods.
	activated map[types.UID]time.Time
}

type backingOff struct {
	entry
	keys  []types.UID
	until time.Time
}

// until stores when to activate a pod. It replaces an entry for a former claim of the same name.
func (p *putOff) until(e entry, keys []types.UID, until time.Time) {
	if p.backingOff == nil {
		p.backingOff, p.activated = map[types.UID]*backingOff{}, map[types.UID]time.Time{}
	}
	if known := p.backingOff[e.key]; known != nil && slices.Equal(known.keys, keys) {
		return
	}
	p.backingOff[e.key] = &backingOff{e.minimal(), keys, until}
	p.next = earlier(p.next, until)
}

// leave removes a pod or a group.
func (p *putOff) leave(key types.UID) { delete(p.backingOff, key) }

// due removes the pods whose back-off has ended, and returns them, one for each claim at a time. next is the time of the next
// call; zero if no pod waits. until returns the current end of the back-off of claims.
func (p *putOff) due(now time.Time, until func(keys []types.UID) (time.Time, bool)) (due []entry, next time.Time) {
	if len(p.backingOff) == 0 || p.next.After(now) {
		if len(p.backingOff) == 0 {
			p.next = time.Time{}
		}
		return nil, p.next
	}
	for key, at := range p.activated {
		if now.Sub(at) >= samePause {
			delete(p.activated, key)
		}
	}
	p.next = time.Time{}
	for key, waits := range p.backingOff {
		if !waits.until.After(now) {
			if longer, backsOff := until(waits.keys); backsOff {
				waits.until = longer
			} else if last, known := p.activated[waits.keys[0]]; known {
				waits.until = last.Add(samePause)
			} else {
				due = append(due, waits.entry)
				p.activated[waits.keys[0]] = now
				p.leave(key)
				continue
			}
		}
		p.next = earlier(p.next, waits.until)
	}
	return due, p.next
}
