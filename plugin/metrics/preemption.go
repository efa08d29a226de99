// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import "k8s.io/component-base/metrics"

// Values of the label "result": the result of an attempt to preempt pods for devices.
const (
	// PreemptionNominated means that pods are evicted, and the preemptor is nominated to their node.
	PreemptionNominated = "nominated"
	// PreemptionNotHelpful means that evictions would not help on any node.
	PreemptionNotHelpful = "not_helpful"
	// PreemptionNotEligible means that no pods may be evicted for this pod now.
	PreemptionNotEligible = "not_eligible"
	// PreemptionFailed means that preemption ended with an error.
	PreemptionFailed = "error"
)

// HoldEnds are the values of the label "end": why devices are no longer held for a preemptor.
var HoldEnds = []string{holdBound, holdMoved, "deleted", "claim_deleted", "timeout", holdBroken, "lost", "unrecorded"}

// After these ends the evictions were useful. The preemptor was bound to the node (holdBound) or to another node (holdMoved),
// or another pod, usually of a higher priority, gets the victims' devices (holdBroken).
const (
	holdBound  = "bound"
	holdMoved  = "moved"
	holdBroken = "broken"
)

// ObservePreemption counts a search for pods to evict for devices.
func (m *Metrics) ObservePreemption(outcome string) { m.preemptions.WithLabelValues(outcome).Inc() }

// ObserveVictims counts pods that were chosen for eviction.
func (m *Metrics) ObserveVictims(pods int) { m.victims.Add(float64(pods)) }

// ObserveHoldEnd counts the end of a hold. victims is the number of pods that were evicted for it.
func (m *Metrics) ObserveHoldEnd(end string, victims int) {
	m.holdsEnded.WithLabelValues(end).Inc()
	if end != holdBound && end != holdMoved && end != holdBroken {
		m.wasted.Add(float64(victims))
	}
}

const holdsName = subsystem + "_device_holds"

// newHolds returns a collector for the number of pods with held devices. It exports nothing if preemption for devices is off.
func newHolds() *collector[func() int] {
	desc := newDesc(holdsName, "Number of pods for which devices are held because other pods were evicted for them.")
	return &collector[func() int]{descs: []*metrics.Desc{desc}, show: func(count func() int, value func(*metrics.Desc, float64, ...string)) {
		value(desc, float64(count()))
	}}
}

// WatchHolds sets the function that returns the number of holds.
func (m *Metrics) WatchHolds(count func() int) { m.holds.setSource(count) }
