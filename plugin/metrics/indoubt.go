// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

// InDoubtOutcomes are the values of the label "outcome" of allocations that were in doubt.
var InDoubtOutcomes = []string{"stored", "not_stored", "gone", "given_up"}

// ObserveInDoubt is called when it is known what became of an allocation whose writing had no clear end.
func (m *Metrics) ObserveInDoubt(outcome string) { m.inDoubt.WithLabelValues(outcome).Inc() }
