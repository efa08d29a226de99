// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import "k8s.io/component-base/metrics"

// Values of the label "result" of an attempt to preempt for devices.
const (
	// PreemptionNominated means that pods are evicted and the pod is nominated to their node.
	PreemptionNominated = "nominated"
	// PreemptionNotHelpful means that there is no node on which it would help to evict pods.
	PreemptionNotHelpful = "not_helpful"
	// PreemptionNotEligible means that the pod may not have others evicted, or not yet.
	PreemptionNotEligible = "not_eligible"
	// PreemptionFailed means an error.
	PreemptionFailed = "error"
)

// HoldEnds are the values of the label "end" of holds that ended.
var HoldEnds = []string{holdBound, holdMoved, "deleted", "claim_deleted", "timeout", holdBroken, "lost", "unrecorded"}

// After holds with these ends nobody was evicted in vain. After holdBound and holdMoved the pod is bound, in the latter case
// to another node. After holdBroken a pod that goes before it has the devices of the victims.
const (
	holdBound  = "bound"
	holdMoved  = "moved"
	holdBroken = "broken"
)

// ObservePreemption is called when it was looked for pods to evict for devices.
func (m *Metrics) ObservePreemption(outcome string) { m.preemptions.WithLabelValues(outcome).Inc() }

// ObserveVictims is called when pods were chosen.
func (m *Metrics) ObserveVictims(pods int) { m.victims.Add(float64(pods)) }

// ObserveHoldEnd is called when devices are not held any longer for a pod for which so many pods were
// evicted.
func (m *Metrics) ObserveHoldEnd(end string, victims int) {
	m.holdsEnded.WithLabelValues(end).Inc()
	if end != holdBound && end != holdMoved && end != holdBroken {
		m.wasted.Add(float64(victims))
	}
}

const holdsName = subsystem + "_device_holds"

// newHolds shows for how many pods devices are held, where devices are preempted.
func newHolds() *collector[func() int] {
	desc := newDesc(holdsName, "Number of pods for which devices are held because others were evicted for them.")
	return &collector[func() int]{descs: []*metrics.Desc{desc}, show: func(count func() int, value func(*metrics.Desc, float64, ...string)) {
		value(desc, float64(count()))
	}}
}

// WatchHolds says who knows the number of holds.
func (m *Metrics) WatchHolds(count func() int) { m.holds.know(count) }
