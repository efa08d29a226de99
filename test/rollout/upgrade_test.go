// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulerconfig "k8s.io/kube-scheduler/config/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/env"
)

// TestUpgradedWithClaimsInFlight has a second process wait for the lease of the first,
// which is asked to end in the midst of an allocation. The second one goes on with it.
func TestUpgradedWithClaimsInFlight(t *testing.T) {
	for name, tc := range map[string]struct {
		point point
		// stored: the claim has its devices when the second process comes.
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
			next.stop() // it gives the lease up
		})
	}
}

// electing are the options of a scheduler that elects a leader, as in a cluster, but
// asks more often. On a busy machine a renewal may take seconds.
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
