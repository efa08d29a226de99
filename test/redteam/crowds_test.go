// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package redteam

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/controlplane"
)

// TestManyPodsThatCannotRun lets mallory create a thousand pods that can't run, because their claim is missing or no node is
// large enough. Alice's pods must still be scheduled soon. Pods that are too large need no plugin of ours, so they also run
// with kube-scheduler on the same machine, for comparison.
func TestManyPodsThatCannotRun(t *testing.T) {
	cases.OnlyNightly(t, "takes minutes; the tests of plugin/guard count the same")
	const many = 1000
	l := startLab(t)
	_, err := controlplane.Build(t.Context(), "", t.Output(), controlplane.KubeScheduler)
	require.NoError(t, err)
	stock := &program{name: controlplane.KubeScheduler, start: func(ctx context.Context) (*controlplane.Process, error) {
		return l.ControlPlane.StartScheduler(ctx, controlplane.SchedulerOptions{Binary: l.Binary(controlplane.KubeScheduler)})
	}}
	crowd := func(profile, claim, cpu string) (pods []client.Object) {
		for i := range many {
			p := pod(unchecked, fmt.Sprintf("crowd-%d", i), profile, claim)
			if cpu != "" {
				p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *quantity(cpu)}
			}
			pods = append(pods, p)
		}
		return pods
	}
	for _, tc := range []struct {
		name      string
		scheduler *program
		pods      []client.Object
		// most is the maximum scheduling time of alice's pods. 0 means that the time is not checked, because kube-scheduler
		// retries all pods repeatedly.
		most time.Duration
	}{
		{"kube-scheduler, no node is large enough", stock, crowd("default-scheduler", "", "1000"), 0},
		{"celset-scheduler, no node is large enough", l.scheduler(), crowd("default-scheduler", "", "1000"), 0},
		{"celset-scheduler, the claim is missing", l.scheduler(), crowd("celset-scheduler", "missing", ""), 2 * time.Second},
		{"kube-scheduler, no node is large enough, again", stock, crowd("default-scheduler", "", "1000"), 0},
	} {
		tc.scheduler.run(t)
		alone, _ := l.siege(t, tc.scheduler, 50, func() {})
		took, total := l.siege(t, tc.scheduler, 50, func() { l.create(t, tc.pods...) })
		t.Logf("%s: alice's pods %s, alone %s; %s", tc.name, written(took), written(alone), total.of(many))
		if tc.most > 0 {
			require.LessOrEqual(t, took[len(took)-1], tc.most+2*alone[len(alone)-1])
		}
		tc.scheduler.process.Stop()
		l.clear(t)
	}
}
