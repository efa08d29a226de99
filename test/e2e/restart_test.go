// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/celset/celset/internal/controlplane"
)

// sameContainer checks that a pod's container was not started again.
func sameContainer(t *testing.T, before *corev1.Pod) {
	t.Helper()
	after, err := client().CoreV1().Pods(namespace).Get(t.Context(), before.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.PodRunning, after.Status.Phase)
	require.Equal(t, before.Status.ContainerStatuses[0].ContainerID, after.Status.ContainerStatuses[0].ContainerID)
}

// runsAtEnd starts a process of the node again if a test that ended it has failed before
// it did so itself, for the sake of the others.
func runsAtEnd(t *testing.T, name string, start func() error) {
	t.Helper()
	t.Cleanup(func() {
		for _, process := range cluster.Processes() {
			if process.Name() == cluster.node.Name()+"-"+name {
				return
			}
		}
		require.NoError(t, start())
	})
}

// waitBound waits until a pod has a node.
func waitBound(t *testing.T, pod string) {
	t.Helper()
	_, err := waitPod(t.Context(), pod, "it has a node", func(p *corev1.Pod) bool { return p.Spec.NodeName != "" })
	require.NoError(t, err)
}

// TestKubeletRestart has one pod run all the while, and one come and one go while there
// is no kubelet.
//
// It takes its time: a kubelet that starts deletes the ResourceSlices of its node, in
// case that their drivers don't come back, and the library of the drivers publishes
// devices again half a minute after it did last. Until then, the next pod waits.
func TestKubeletRestart(t *testing.T) {
	for name, end := range map[string]func(){
		"stopped": cluster.node.StopKubelet,
		"killed":  cluster.node.KillKubelet,
	} {
		t.Run(name, func(t *testing.T) {
			removeAtEnd(t, "stays", "goes", "comes", "next")
			ring.mustRun(t, "stays", "goes")
			stays, err := waitRunning(t.Context(), "stays")
			require.NoError(t, err)
			kept, err := ring.check(t.Context(), "stays")
			require.NoError(t, err)
			freed, err := ring.check(t.Context(), "goes")
			require.NoError(t, err)

			end()
			runsAtEnd(t, "kubelet", startKubelet)
			require.NoError(t, grid.create(t.Context(), "comes"))
			waitBound(t, "comes")
			require.NoError(t, client().CoreV1().Pods(namespace).Delete(t.Context(), "goes", metav1.DeleteOptions{}))
			require.NoError(t, ring.create(t.Context(), "next"))
			require.NoError(t, waitEvent(t.Context(), "next", "FailedScheduling", noSetFree),
				"nobody has seen the other one end")
			require.NoError(t, startKubelet())

			_, err = waitRunning(t.Context(), "comes")
			require.NoError(t, err)
			_, err = grid.check(t.Context(), "comes")
			require.NoError(t, err)
			_, err = waitRunning(t.Context(), "next")
			require.NoError(t, err)
			got, err := ring.check(t.Context(), "next")
			require.NoError(t, err)
			require.Equal(t, freed, got)
			sameContainer(t, stays)
			again, err := ring.check(t.Context(), "stays")
			require.NoError(t, err)
			require.Equal(t, kept, again)
		})
	}
}

// TestDriverRestart is the same without the driver: what it prepared stays, what comes
// and what goes has to wait for it.
func TestDriverRestart(t *testing.T) {
	for name, end := range map[string]func(*controlplane.Process){
		"stopped": (*controlplane.Process).Stop,
		"killed":  (*controlplane.Process).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			removeAtEnd(t, "stays", "goes", "next")
			ring.mustRun(t, "stays", "goes")
			stays, err := waitRunning(t.Context(), "stays")
			require.NoError(t, err)
			freed, err := ring.check(t.Context(), "goes")
			require.NoError(t, err)
			prepared, err := specs()
			require.NoError(t, err)
			require.Len(t, prepared, 2)

			end(cluster.drivers[ring.Pod])
			runsAtEnd(t, ring.Pod, func() error { return startDriver(ring) })
			require.NoError(t, client().CoreV1().Pods(namespace).Delete(t.Context(), "goes", metav1.DeleteOptions{}))
			require.NoError(t, ring.create(t.Context(), "next"))
			require.NoError(t, waitContainerEnded(t.Context(), "goes"))
			left, err := specs()
			require.NoError(t, err)
			require.Equal(t, prepared, left, "nobody is there to remove them")
			require.NoError(t, startDriver(ring))

			_, err = waitRunning(t.Context(), "next")
			require.NoError(t, err)
			got, err := ring.check(t.Context(), "next")
			require.NoError(t, err)
			require.Equal(t, freed, got)
			sameContainer(t, stays)
			require.Zero(t, refused(t, ring))
		})
	}
}

// waitContainerEnded waits until the container of a pod that is being deleted has ended.
func waitContainerEnded(ctx context.Context, pod string) error {
	return wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(ctx context.Context) (bool, error) {
		p, err := client().CoreV1().Pods(namespace).Get(ctx, pod, metav1.GetOptions{})
		return err == nil && p.Status.ContainerStatuses[0].State.Terminated != nil, err
	})
}
