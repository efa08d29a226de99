// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/env"
)

// TestRolledBackToTheStockScheduler replaces celset-scheduler by kube-scheduler, and
// back. What is allocated stays; a pod whose claim was just being allocated goes on
// where it was; what is new and constrained waits.
func TestRolledBackToTheStockScheduler(t *testing.T) {
	for name, tc := range map[string]struct {
		stock controlplane.SchedulerOptions
		// refusal is what pods with constraints are told.
		refusal string
	}{
		"our profile has the stock plugin": {
			stock: withProfiles(env.StockProfile, env.CelsetProfile), refusal: "cannot allocate all claims",
		},
		"our profile is gone": {stock: withProfiles(env.StockProfile)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkload(t, "rollback", 4)
			s := start(t, w.openGate(t), enabled())
			running := w.add(t, ringKind, pairKind, blockKind, plainKind, stockKind)
			w.requireBound(t, running...)
			trap := s.gate.arm(point{bind, before}, 1)
			inFlight := w.add(t, ringKind)
			trap.await(t)
			s.stop()
			kept := w.allocations(t)
			require.NotNil(t, kept[inFlight[0]].NodeSelector, "it has devices and no node")

			s = start(t, w.openGate(t), tc.stock)
			waiting := w.add(t, ringKind, blockKind)
			w.requireBound(t, w.add(t, stockKind)...)
			if tc.refusal == "" {
				w.requireIgnored(t, append(waiting, inFlight...)...)
			} else {
				w.requireBound(t, inFlight...)
				w.requireBound(t, w.add(t, plainKind)...)
				w.requireRefused(t, tc.refusal, waiting...)
				w.join(t, running[0])
			}
			w.requireKept(t, kept)
			w.delete(t, running[1])
			delete(kept, running[1])
			w.requireFreed(t)
			s.requireAlive(t)

			s.stop()
			start(t, w.openGate(t), enabled())
			w.requireBound(t, append(append(waiting, inFlight...), running[0])...)
			w.requireKept(t, kept)
			w.requireSettled(t)
		})
	}
}

// requireIgnored fails the test if a scheduler has looked at the pods of the units. It
// has seen pods that came later.
func (w *workload) requireIgnored(t *testing.T, units ...string) {
	t.Helper()
	for _, unit := range units {
		w.eventuallyPods(t, unit, "ignored", func(pod *corev1.Pod) string {
			require.Empty(t, pod.Spec.NodeName)
			require.Empty(t, refusalOf(pod))
			return ""
		})
	}
}

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
