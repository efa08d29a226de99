// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDisabledAndEnabledAgain turns the feature off under running pods, and on again.
func TestDisabledAndEnabledAgain(t *testing.T) {
	w := newWorkload(t, "switch", 4)
	s := start(t, w.openGate(t), enabled())
	running := w.add(t, ringKind, pairKind, blockKind, plainKind, stockKind, extendedKind)
	w.requireBound(t, running...)
	w.requireSettled(t)
	before := w.allocations(t)
	require.Len(t, before, len(running))

	s.stop()
	s = start(t, w.openGate(t), disabled())
	waiting := w.add(t, ringKind, blockKind)
	w.requireRefused(t, "the feature gate DRACELDeviceConstraint is disabled: enable it with --feature-gates=DRACELDeviceConstraint=true", waiting...)
	w.requireBound(t, w.add(t, plainKind, stockKind, extendedKind)...)
	w.join(t, running[0])
	w.requireBound(t, running...)
	w.requireKept(t, before)

	// Pods that go are not the scheduler's business.
	w.delete(t, running[1])
	delete(before, running[1])
	w.requireFreed(t)
	w.requireRefused(t, "DRACELDeviceConstraint", waiting...)
	s.requireAlive(t)

	s.stop()
	start(t, w.openGate(t), enabled())
	w.requireBound(t, waiting...)
	w.requireKept(t, before)
	w.requireSettled(t)
}
