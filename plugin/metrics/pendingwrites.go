// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

// PendingWriteOutcomes are the values of the label "result" for allocations whose response was lost.
var PendingWriteOutcomes = []string{"stored", "not_stored", "gone", "given_up"}

// ObservePendingWrite counts an allocation whose response was lost, when its result has become known.
func (m *Metrics) ObservePendingWrite(outcome string) { m.pendingWrites.WithLabelValues(outcome).Inc() }
