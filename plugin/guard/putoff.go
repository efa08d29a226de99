// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// samePause is the minimum time between the activations of two pods that use the same claim. The attempt for the first pod may
// start another back-off of the claim.
const samePause = 250 * time.Millisecond

// putOff holds the pods that wait for the back-off of a claim. Deleted pods are removed.
type putOff struct {
	backingOff map[types.UID]*backingOff
	// next is when due must look again. No back-off ends before that time.
	next time.Time
	// activated maps the UID of a claim to the last activation of one of its pods.
	activated map[types.UID]time.Time
}

type backingOff struct {
	entry
	keys  []types.UID
	until time.Time
}

// until stores a pod with the end of its back-off. If the pod is already stored, it is replaced only if its keys have changed.
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

// leave removes a pod or a group by its key.
func (p *putOff) leave(key types.UID) { delete(p.backingOff, key) }

// due removes and returns the pods whose back-off has ended, one at a time for each claim. next is the time of the next call,
// or zero if no pod waits. The parameter until returns the current end of the back-off of claims.
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
