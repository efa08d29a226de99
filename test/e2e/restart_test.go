// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/realnode"
)

// sameContainer requires that the pod's container has not been restarted.
func sameContainer(t *testing.T, before *corev1.Pod) {
	t.Helper()
	after, err := client().CoreV1().Pods(namespace).Get(t.Context(), before.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.PodRunning, after.Status.Phase)
	require.Equal(t, before.Status.ContainerStatuses[0].ContainerID, after.Status.ContainerStatuses[0].ContainerID)
}

// runsAtEnd makes sure that a process of the node runs after the test, because other tests need it. If the test fails while the
// process is stopped, it starts the process.
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

// waitBound waits until the pod is bound to a node.
func waitBound(t *testing.T, pod string) {
	t.Helper()
	_, err := waitPod(t.Context(), pod, "it has a node", func(p *corev1.Pod) bool { return p.Spec.NodeName != "" })
	require.NoError(t, err)
}

// TestKubeletRestart stops and starts the kubelet. One pod runs all the time. While the kubelet is down, a second pod is
// created and a third is deleted.
//
// The test is slow: a starting kubelet deletes the ResourceSlices of its node, because their drivers may be gone. The library
// of the drivers publishes the slices again half a minute after its last update. Until then, the next pod waits.
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

// TestDriverRestart creates and deletes pods while the driver is down. A pod with prepared devices continues to run. Other pods
// wait until the driver is back.
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

// waitContainerEnded waits until the container of a pod in deletion has ended.
func waitContainerEnded(ctx context.Context, pod string) error {
	return wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(ctx context.Context) (bool, error) {
		p, err := client().CoreV1().Pods(namespace).Get(ctx, pod, metav1.GetOptions{})
		return err == nil && p.Status.ContainerStatuses[0].State.Terminated != nil, err
	})
}

const (
	churnPods = 30
	// churnAtOnce is the number of pods that exist at the same time. It is more than the six that get devices.
	churnAtOnce = 8
)

// TestChurn creates and deletes many pods on the node, while the kubelet and the drivers are restarted. The ledger and the
// drivers would detect a double allocation.
func TestChurn(t *testing.T) {
	before := cluster.ledger.Entries().Allocations
	stories := []*realStory{ring, grid}
	var pods []string
	for i := range churnPods {
		pods = append(pods, fmt.Sprintf("churn-%d", i))
	}
	removeAtEnd(t, pods...)

	refusedBefore := map[*realStory]float64{}
	for _, s := range stories {
		refusedBefore[s] = refused(t, s)
	}
	var ended atomic.Int32
	halfway := make(chan struct{})
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(churnAtOnce + 1) // one more for the goroutine that restarts the kubelet
	group.Go(func() error {
		select {
		case <-halfway:
		case <-ctx.Done():
			return ctx.Err()
		}
		cluster.node.KillKubelet()
		return startKubelet()
	})
	for i, name := range pods {
		s := stories[i%len(stories)]
		group.Go(func() error {
			if err := s.comeAndGo(ctx, name); err != nil {
				return err
			}
			if ended.Add(1) == churnPods/2 {
				close(halfway)
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	for _, s := range stories {
		require.Equal(t, refusedBefore[s], refused(t, s), "the driver was to prepare a device for two claims")
	}
	require.Eventually(t, func() bool { return cluster.ledger.Entries().Allocations-before >= churnPods }, patience, pollPeriod,
		"the ledger has read as many allocations as there were pods")
	require.NoError(t, cluster.ledger.Entries().Err())
}

// comeAndGo runs a pod until it has ended, and then checks the devices in its log. The devices may be allocated to other pods
// by then.
func (s *realStory) comeAndGo(ctx context.Context, name string) error {
	if err := s.create(ctx, name, ends("1s")); err != nil {
		return err
	}
	if _, err := waitSucceeded(ctx, name); err != nil {
		return err
	}
	if _, err := s.check(ctx, name); err != nil {
		return err
	}
	return remove(ctx, name)
}

// TestDoubleAllocationIsRefused simulates a bug of a scheduler: a second claim is allocated with the devices of a running pod.
// The driver must refuse them. So it is meaningful that the drivers refuse no device in other tests.
func TestDoubleAllocationIsRefused(t *testing.T) {
	removeAtEnd(t, "holder", "intruder")
	before := refused(t, ring)
	devices := ring.mustRun(t, "holder")
	holder, err := waitRunning(t.Context(), "holder")
	require.NoError(t, err)
	name, err := claimOf(holder)
	require.NoError(t, err)
	held, err := client().ResourceV1().ResourceClaims(namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)

	forged := forge(t, held)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "intruder"},
		Spec: corev1.PodSpec{
			// The pod names its node, so that no scheduler sees it.
			NodeName:       cluster.node.Name(),
			ResourceClaims: []corev1.PodResourceClaim{{Name: "mla", ResourceClaimName: &forged.Name}},
			Containers: []corev1.Container{{
				Name:      "main",
				Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "mla"}}},
			}},
		},
	}
	realnode.Adapt(&pod.Spec)
	intruder, err := client().CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	forged.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: intruder.Name, UID: intruder.UID}}
	_, err = client().ResourceV1().ResourceClaims(namespace).UpdateStatus(t.Context(), forged, metav1.UpdateOptions{})
	require.NoError(t, err)

	require.NoError(t, waitEvent(t.Context(), "intruder", "FailedPrepareDynamicResources", "double allocation",
		devices[0], forged.Name, held.Name))
	require.Greater(t, refused(t, ring), before)
	sameContainer(t, holder)
	got, err := client().CoreV1().Pods(namespace).Get(t.Context(), "intruder", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.PodPending, got.Status.Phase)
}

// forge creates a claim whose allocation has the devices of another claim.
func forge(t *testing.T, from *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	t.Helper()
	claims := client().ResourceV1().ResourceClaims(namespace)
	forged, err := claims.Create(t.Context(), &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "forged", Labels: map[string]string{forgedLabel: ""}},
		Spec:       from.Spec,
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, claims.Delete(context.Background(), forged.Name, metav1.DeleteOptions{}))
	})
	forged.Status.Allocation = from.Status.Allocation
	return forged
}
