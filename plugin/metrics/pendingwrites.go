// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

// PendingWriteOutcomes are the values of the label "result" of allocations with a lost answer.
var PendingWriteOutcomes = []string{"stored", "not_stored", "gone", "given_up"}

// ObservePendingWrite counts an allocation with a lost answer after its result is known.
func (m *Metrics) ObservePendingWrite(outcome string) { m.pendingWrites.WithLabelValues(outcome).Inc() }
