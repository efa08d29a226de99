// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulerconfig "k8s.io/kube-scheduler/config/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// TestRolledBackToTheStockScheduler replaces celset-scheduler by kube-scheduler, and goes back. Allocations must stay. A pod
// whose claim was being allocated must be bound. New pods with constraints must wait until celset-scheduler is back.
func TestRolledBackToTheStockScheduler(t *testing.T) {
	for name, tc := range map[string]struct {
		stock controlplane.SchedulerOptions
		// refusal is the message of kube-scheduler for pods with constraints.
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

// requireIgnored waits until a scheduler has tried later pods, and requires that it has not tried the pods of the units.
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

// TestDisabledAndEnabledAgain turns the feature gate off while pods run, and on again.
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

	// Pods can end while our scheduler does not run.
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

// TestUpgradedWithClaimsInFlight runs two schedulers with leader election. The first is stopped during an allocation. The
// second becomes the leader, and must finish the allocation.
func TestUpgradedWithClaimsInFlight(t *testing.T) {
	for name, tc := range map[string]struct {
		point point
		// stored is set if the allocation is already stored when the second scheduler becomes the leader.
		stored bool
	}{
		"before the allocation is stored": {point: point{allocate, before}},
		"after the allocation is stored":  {point: point{allocate, after}, stored: true},
		"before the pod is bound":         {point: point{bind, before}, stored: true},
		"after the pod is bound":          {point: point{bind, after}, stored: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkload(t, "upgrade", 3)
			old := start(t, w.openGate(t), electing(t, "old", 15*time.Second))
			running := w.add(t, ringKind, blockKind, stockKind)
			w.requireBound(t, running...)

			var next *scheduler
			gate, options := w.openGate(t), electing(t, "new", 15*time.Second)
			var starting errgroup.Group
			starting.Go(func() (err error) {
				next, err = launch(t, gate, options)
				return err
			})
			trap := old.gate.arm(tc.point, 1)
			inFlight := w.add(t, ringKind)
			trap.await(t)
			kept := w.allocations(t)
			_, stored := kept[inFlight[0]]
			require.Equal(t, tc.stored, stored)
			old.stop()

			later := w.add(t, pairKind, extendedKind)
			require.NoError(t, starting.Wait())
			w.requireBound(t, append(inFlight, later...)...)
			w.requireKept(t, kept)
			w.requireSettled(t)
			next.requireAlive(t)
			next.stop() // a graceful end releases the lease
		})
	}
}

// electing returns the options of a scheduler with leader election. It retries more often than in a cluster. The lease duration
// must be long enough for a busy machine, where a renewal may take seconds.
func electing(t *testing.T, name string, lease time.Duration) controlplane.SchedulerOptions {
	t.Helper()
	content, err := os.ReadFile(env.Manifest(t, "scheduler", "config.yaml"))
	require.NoError(t, err)
	config := &schedulerconfig.KubeSchedulerConfiguration{}
	require.NoError(t, yaml.UnmarshalStrict(content, config))
	config.LeaderElection.LeaderElect = ptr.To(true)
	config.LeaderElection.LeaseDuration = metav1.Duration{Duration: lease}
	config.LeaderElection.RenewDeadline = metav1.Duration{Duration: lease * 4 / 5}
	config.LeaderElection.RetryPeriod = metav1.Duration{Duration: 500 * time.Millisecond}
	options := enabled()
	options.Name = "celset-scheduler-" + name
	options.Config, err = yaml.Marshal(config)
	require.NoError(t, err)
	return options
}
