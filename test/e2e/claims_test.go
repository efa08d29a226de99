// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/component-base/metrics/testutil"
)

// noSetFree is a part of the event of a pod that waits because the ring has no set of free devices.
const noSetFree = "no set of 4 free devices satisfies constraint ring4"

// TestContainerSeesConnectedDevices runs the pods of both user stories, and checks the devices in their containers. Some nodes
// are simulated by kwok. They have enough free devices, but no connected ones, so the pods must run on the real node.
func TestContainerSeesConnectedDevices(t *testing.T) {
	for _, s := range []*realStory{ring, grid} {
		t.Run(s.Pod, func(t *testing.T) {
			removeAtEnd(t, "first")
			require.Len(t, s.mustRun(t, "first"), 4)
		})
	}
}

// TestBothStoriesAtOnce runs one container with the claims of both stories, from two drivers.
func TestBothStoriesAtOnce(t *testing.T) {
	removeAtEnd(t, "both", "template")
	// This pod is created only because create also creates its claim template.
	require.NoError(t, grid.create(t.Context(), "template"))
	require.NoError(t, ring.create(t.Context(), "both", func(spec *corev1.PodSpec) {
		template := grid.Template
		spec.ResourceClaims = append(spec.ResourceClaims, corev1.PodResourceClaim{Name: "mesh", ResourceClaimTemplateName: &template})
		claims := &spec.Containers[0].Resources.Claims
		*claims = append(*claims, corev1.ResourceClaim{Name: "mesh"})
	}))
	_, err := waitRunning(t.Context(), "both")
	require.NoError(t, err)
	lines, err := log(t.Context(), "both")
	require.NoError(t, err)
	require.Len(t, lines, 9)
	seen := map[*realStory][]string{}
	for _, line := range lines[:8] {
		for _, s := range []*realStory{ring, grid} {
			if device, err := s.deviceIn(line); err == nil {
				seen[s] = append(seen[s], device)
			}
		}
	}
	for s, devices := range seen {
		require.True(t, s.Holds(devices), "%s: %v", s.Pod, devices)
	}
	require.Len(t, seen, 2)
}

// TestNextPodGetsTheDevices runs two pods that use the whole ring. A third pod must wait until one of them is deleted.
func TestNextPodGetsTheDevices(t *testing.T) {
	removeAtEnd(t, "first", "second", "third")
	devices := ring.mustRun(t, "first", "second")
	require.Len(t, devices, 8, "the whole ring")
	freed, err := ring.check(t.Context(), "first")
	require.NoError(t, err)

	require.NoError(t, ring.create(t.Context(), "third"))
	require.NoError(t, waitEvent(t.Context(), "third", "FailedScheduling", noSetFree))
	require.NoError(t, remove(t.Context(), "first"))
	_, err = waitRunning(t.Context(), "third")
	require.NoError(t, err)
	got, err := ring.check(t.Context(), "third")
	require.NoError(t, err)
	require.Equal(t, freed, got)
	kept, err := ring.check(t.Context(), "second")
	require.NoError(t, err)
	require.NotContains(t, got, kept[0])
}

// TestWaitingPodRunsWhenTheBlockingOneEnds checks that a pod gets the devices of a pod that ends by itself, even if that pod is
// not deleted.
func TestWaitingPodRunsWhenTheBlockingOneEnds(t *testing.T) {
	removeAtEnd(t, "long", "short", "waits")
	ring.mustRun(t, "long")
	require.NoError(t, ring.create(t.Context(), "short", ends("5s")))
	short, err := waitRunning(t.Context(), "short")
	require.NoError(t, err)
	blocked, err := ring.check(t.Context(), "short")
	require.NoError(t, err)

	require.NoError(t, ring.create(t.Context(), "waits"))
	require.NoError(t, waitEvent(t.Context(), "waits", "FailedScheduling", noSetFree))
	waits, err := waitRunning(t.Context(), "waits")
	require.NoError(t, err)
	got, err := ring.check(t.Context(), "waits")
	require.NoError(t, err)
	require.Equal(t, blocked, got)

	ended, err := client().CoreV1().Pods(namespace).Get(t.Context(), "short", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, short.UID, ended.UID, "nobody has deleted it")
	require.Equal(t, corev1.PodSucceeded, ended.Status.Phase)
	finished := ended.Status.ContainerStatuses[0].State.Terminated.FinishedAt
	started := waits.Status.ContainerStatuses[0].State.Running.StartedAt
	require.False(t, started.Before(&finished), "it started at %s, before the other one ended at %s", started, finished)
}

// specs returns the CDI files on the node. Drivers write one for each prepared claim.
func specs() ([]string, error) {
	entries, err := os.ReadDir(cluster.node.CDIDir())
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, err
}

// waitUnprepared waits until no claim on the node is prepared.
func waitUnprepared(ctx context.Context) error {
	var left []string
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(context.Context) (_ bool, err error) {
		left, err = specs()
		return err == nil && len(left) == 0, err
	})
	if err != nil {
		return fmt.Errorf("wait until nothing is prepared: %w: %s", err, strings.Join(left, ", "))
	}
	return nil
}

// refused returns how often the driver of a story has refused a device because it was prepared for another claim.
func refused(t *testing.T, s *realStory) float64 {
	t.Helper()
	content, err := cluster.drivers[s.Pod].Get(t.Context(), "/metrics")
	require.NoError(t, err)
	families, err := testutil.TextToMetricFamilies(bytes.NewReader(content))
	require.NoError(t, err)
	sum := 0.0
	family := families["celset_topology_driver_double_allocations_total"]
	require.NotNil(t, family, "the metric has another name")
	for _, metric := range family.Metric {
		sum += metric.GetCounter().GetValue()
	}
	return sum
}
