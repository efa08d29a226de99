// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

// PendingWriteOutcomes are the values of the label "result" of allocations that were in doubt.
var PendingWriteOutcomes = []string{"stored", "not_stored", "gone", "given_up"}

// ObservePendingWrite is called when it is known what became of an allocation whose writing had no clear end.
func (m *Metrics) ObservePendingWrite(outcome string) { m.pendingWrites.WithLabelValues(outcome).Inc() }
