// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// inherit passes the hold of a deleted pod to the heir, a waiting pod that uses the same claims. So no other pods are evicted
// for the heir while the victims end. inherits is nil if no such pod waits. broken has the pods whose holds break, for example
// the heir if a foreign hold precedes its hold.
func (h *Holds) inherit(ending *held) (inherits *Hold, broken []types.UID) {
	var heir *waiting
	for uid, waits := range ending.waiting {
		if len(waits.shares) > 0 && h.byPod[uid] == nil && (heir == nil || heir.isAfter(&waits)) {
			heir = &waits
		}
	}
	if heir == nil || ending.Foreign {
		return nil, nil
	}
	of := h.tries[heir.pod.UID]
	if of == nil {
		of = &tried{}
		h.tries[heir.pod.UID] = of
	}
	of.count++
	of.stop()
	pod, activate := heir.pod, heir.activate
	inherited := &held{
		Hold: Hold{
			Pod: pod, Node: ending.Node, Victims: ending.Victims, Joined: ending.Joined, Frees: ending.Frees, Began: ending.Began, Until: ending.Until, Try: of.count,
			Retry:  func() { activate(pod) },
			Claims: slices.DeleteFunc(slices.Clone(ending.Claims), func(claim Claim) bool { return !slices.Contains(heir.shares, claim.UID) }),
		},
		since: ending.since, restored: ending.restored, evicted: ending.evicted, resumes: ending.resumes, resumed: ending.resumed,
		waiting: map[types.UID]waiting{},
	}
	ending.evicted = nil
	inherited.timer = h.clock.AfterFunc(max(inherited.Until.Sub(h.clock.Now()), 1), func() { h.endTry(pod.UID, inherited, TimedOut) })
	h.byPod[pod.UID] = inherited
	return &inherited.Hold, h.brokenBy(inherited)
}

// isAfter orders possible heirs by descending priority, then by name. The first inherits.
func (w *waiting) isAfter(other *waiting) bool {
	return cmp.Or(cmp.Compare(corev1helpers.PodPriority(other.pod), corev1helpers.PodPriority(w.pod)), cmp.Compare(w.pod.Name, other.pod.Name)) > 0
}
