// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kubefeatures "k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/testing/minor"
	"github.com/celset/celset/internal/topology"
)

// finalizer keeps a pod that was deleted: as if it took long to end.
const finalizer = "celset.dev/test"

// rank is a lab with priorities: "rank-1" is the lowest.
type rank struct{ *lab }

func newRank(t *testing.T, name string, nodes int) rank {
	t.Helper()
	l := rank{newLab(t, name, nodes)}
	for i := range 3 {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: l.class(i + 1)}, Value: int32(i+1) * 100}
		_, err := client().SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{})
		require.NoError(t, err)
		cleanup(t, func(ctx context.Context) error {
			return client().SchedulingV1().PriorityClasses().Delete(ctx, class.Name, metav1.DeleteOptions{})
		})
	}
	return l
}

func (l rank) class(rank int) string { return fmt.Sprintf("%s-%d", l.namespace, rank) }

// pod creates a pod of a rank that uses claims.
func (l rank) pod(t *testing.T, rank int, name, profile string, change func(*corev1.Pod), claims ...string) {
	t.Helper()
	pod := podOf(name, profile, claims...)
	pod.Spec.NodeSelector = map[string]string{labLabel: l.namespace}
	pod.Spec.PriorityClassName = l.class(rank)
	pod.Labels = map[string]string{"name": name}
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
	if change != nil {
		change(pod)
	}
	eventually(t, "the API server knows the PriorityClass", func(ctx context.Context) (string, error) {
		_, err := client().CoreV1().Pods(l.namespace).Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			return err.Error(), nil
		}
		return "", err
	})
}

// has creates a pod of a rank that has devices of a node, and waits until it runs.
func (l rank) has(t *testing.T, rank int, name, node string, devices topology.Topology, change func(*corev1.Pod), names ...string) {
	t.Helper()
	selected, err := devices.Select(names)
	require.NoError(t, err)
	var requests []part
	for _, device := range selected {
		requests = append(requests, one(device))
	}
	l.createClaim(t, name, requests...)
	l.pod(t, rank, name, celsetProfile, func(pod *corev1.Pod) {
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
		if change != nil {
			change(pod)
		}
	}, name)
	l.requireRunning(t, name)
	require.ElementsMatch(t, names, l.devicesOf(t, name))
}

// wants creates a pod of a rank that wants a row of n devices.
func (l rank) wants(t *testing.T, rank int, name string, devices topology.Topology, n int, change func(*corev1.Pod)) {
	t.Helper()
	driver := devices.Drivers()[0]
	l.createClaim(t, name, request("mla", driver, int64(n)), constrained("row", contiguous(driver, n)))
	l.pod(t, rank, name, celsetProfile, change, name)
}

func (l rank) requireGone(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		eventually(t, "pod "+name+" goes", func(ctx context.Context) (string, error) {
			_, err := client().CoreV1().Pods(l.namespace).Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return "", nil
			}
			return "it is there", err
		})
	}
}

// requireThere states that nobody has as much as asked the pods to end.
func (l rank) requireThere(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		require.Nil(t, l.lab.pod(t, name).DeletionTimestamp, name)
	}
}

// let has a pod that was deleted go.
func (l rank) let(t *testing.T, name string) {
	t.Helper()
	pod := l.lab.pod(t, name)
	require.NotNil(t, pod.DeletionTimestamp)
	pod.Finalizers = nil
	_, err := client().CoreV1().Pods(l.namespace).Update(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)
}

func finalized(pod *corev1.Pod) { pod.Finalizers = []string{finalizer} }

func (l rank) awaitEnding(t *testing.T, name string) {
	t.Helper()
	l.eventuallyPod(t, name, "ending", func(_ context.Context, pod *corev1.Pod) (bool, error) { return pod.DeletionTimestamp != nil, nil })
}

// TestPreemptionForASet: two small pods stand in the middle of a ring of which a pod of the highest
// priority wants four neighbours. Of the pods at the edge nobody goes.
func TestPreemptionForASet(t *testing.T) {
	l := newRank(t, "evict", 1)
	ring := l.ring(t, 8)
	node := l.nodes[0]
	l.has(t, 2, "two", node, ring, nil, "mla-0", "mla-1")
	l.has(t, 2, "more", node, ring, nil, "mla-6", "mla-7")
	l.has(t, 1, "small-1", node, ring, nil, "mla-3")
	l.has(t, 1, "small-2", node, ring, nil, "mla-5")
	l.wants(t, 3, "job", ring, 4, nil)
	l.requireRunning(t, "job")
	require.Equal(t, []string{"mla-2", "mla-3", "mla-4", "mla-5"}, l.devicesOf(t, "job"))
	l.requireGone(t, "small-1", "small-2")
	l.requireThere(t, "two", "more")
	l.awaitEvent(t, l.lab.pod(t, "job"), "HoldingDevices", "2 pods are evicted for devices mla-2, mla-3, mla-4, mla-5 of node "+node)
}

// TestPreemptionEvictsTheLeast: whoever adds back the first pod first, as kube-scheduler does, evicts
// two.
func TestPreemptionEvictsTheLeast(t *testing.T) {
	l := newRank(t, "least", 1)
	ring := l.ring(t, 8)
	node := l.nodes[0]
	for name, device := range map[string]string{"a": "mla-0", "b": "mla-2", "c": "mla-3"} {
		l.has(t, 1, name, node, ring, nil, device)
	}
	l.has(t, 2, "rest", node, ring, nil, "mla-5", "mla-6", "mla-7")
	l.wants(t, 3, "job", ring, 2, nil)
	l.requireRunning(t, "job")
	there := 0
	for _, name := range []string{"a", "b", "c"} {
		if pod, err := client().CoreV1().Pods(l.namespace).Get(t.Context(), name, metav1.GetOptions{}); err == nil && pod.DeletionTimestamp == nil {
			there++
		}
	}
	require.Equal(t, 2, there)
	l.requireThere(t, "rest")
}

// TestPreemptionOfPlainClaims: sets have no part in it. One device is free, two are wanted.
func TestPreemptionOfPlainClaims(t *testing.T) {
	l := newRank(t, "plain", 1)
	ring := l.ring(t, 4)
	node := l.nodes[0]
	l.has(t, 1, "low", node, ring, nil, "mla-0")
	l.has(t, 2, "middle", node, ring, nil, "mla-1", "mla-2")
	l.createClaim(t, "job", request("mla", ring.Drivers()[0], 2))
	l.pod(t, 3, "job", celsetProfile, nil, "job")
	l.requireRunning(t, "job")
	l.requireGone(t, "low")
	l.requireThere(t, "middle")
}

// TestPreemptionIsNotForEverybody: not for whom it is forbidden, who has no higher priority, or for whom
// it would not do.
func TestPreemptionIsNotForEverybody(t *testing.T) {
	l := newRank(t, "nobody", 1)
	ring := l.ring(t, 4)
	node := l.nodes[0]
	l.has(t, 2, "one", node, ring, nil, "mla-1")
	l.has(t, 3, "top", node, ring, nil, "mla-3")
	never := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: l.class(0)}, Value: 300, PreemptionPolicy: ptr.To(corev1.PreemptNever)}
	_, err := client().SchedulingV1().PriorityClasses().Create(t.Context(), never, metav1.CreateOptions{})
	require.NoError(t, err)
	cleanup(t, func(ctx context.Context) error {
		return client().SchedulingV1().PriorityClasses().Delete(ctx, never.Name, metav1.DeleteOptions{})
	})
	l.wants(t, 0, "never", ring, 2, nil)
	l.requireRefused(t, "never", "not eligible due to preemptionPolicy=Never")
	l.deletePod(t, "never")
	l.wants(t, 2, "equal", ring, 2, nil)
	l.requireRefused(t, "equal", "preemption: ")
	l.deletePod(t, "equal")
	l.wants(t, 3, "too-much", ring, 4, nil)
	l.requireRefused(t, "too-much", "preemption: ")
	l.requireThere(t, "one", "top")
}

// TestPreemptionDoesNotCountOnWhatStays: devices of claims that nobody would take back.
func TestPreemptionDoesNotCountOnWhatStays(t *testing.T) {
	l := newRank(t, "stays", 1)
	ring := l.ring(t, 4)
	node := l.nodes[0]
	// Another pod, of a high priority, uses the claim too.
	l.has(t, 1, "shared", node, ring, nil, "mla-1")
	l.pod(t, 3, "partner", celsetProfile, nil, "shared")
	l.requireRunning(t, "partner")
	// Nobody uses it any more that evicting could end.
	l.has(t, 1, "foreign", node, ring, nil, "mla-3")
	claim, err := client().ResourceV1().ResourceClaims(l.namespace).Get(t.Context(), "foreign", metav1.GetOptions{})
	require.NoError(t, err)
	claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{
		APIGroup: "example.com", Resource: "jobs", Name: "somebody", UID: "somebody",
	})
	_, err = client().ResourceV1().ResourceClaims(l.namespace).UpdateStatus(t.Context(), claim, metav1.UpdateOptions{})
	require.NoError(t, err)
	// Who only looks is in nobody's way.
	l.createClaim(t, "watcher", request("mla", ring.Drivers()[0], 1), withAdminAccess)
	l.pod(t, 1, "watcher", celsetProfile, nil, "watcher")
	l.requireRunning(t, "watcher")

	l.wants(t, 2, "job", ring, 2, nil)
	l.requireRefused(t, "job", "preemption: ")
	l.requireThere(t, "shared", "partner", "foreign", "watcher")
}

// TestPreemptionKeepsBudgets: a pod of a higher priority goes rather than one that a budget protects.
func TestPreemptionKeepsBudgets(t *testing.T) {
	l := newRank(t, "budget", 1)
	ring := l.ring(t, 4)
	node := l.nodes[0]
	l.has(t, 1, "protected", node, ring, nil, "mla-0", "mla-1")
	l.has(t, 2, "other", node, ring, nil, "mla-2", "mla-3")
	_, err := client().PolicyV1().PodDisruptionBudgets(l.namespace).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "protected"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "protected"}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	l.wants(t, 3, "job", ring, 2, nil)
	l.requireRunning(t, "job")
	l.requireGone(t, "other")
	l.requireThere(t, "protected")
}

// TestHeldDevices: while a victim takes its time to end, pods of the same and of a lower priority don't
// get what is free of the set, and one of a higher does.
func TestHeldDevices(t *testing.T) {
	l := newRank(t, "held", 1)
	ring := l.ring(t, 4)
	node := l.nodes[0]
	l.has(t, 1, "slow", node, ring, finalized, "mla-1")
	l.has(t, 3, "top", node, ring, nil, "mla-3")
	l.wants(t, 2, "job", ring, 3, nil)
	l.awaitEnding(t, "slow")
	for _, rank := range []int{1, 2} {
		for _, profile := range []string{celsetProfile, stockProfile} {
			name := fmt.Sprintf("%s-%d", profile, rank)
			l.createClaim(t, name, request("mla", ring.Drivers()[0], 1))
			l.pod(t, rank, name, profile, nil, name)
			l.requireRefused(t, name, "3 devices of "+node+" are held for pods")
		}
	}
	l.let(t, "slow")
	l.requireRunning(t, "job")
	require.Equal(t, []string{"mla-0", "mla-1", "mla-2"}, l.devicesOf(t, "job"))
}

// TestHoldEndsWithItsPod: who was refused because of it is tried again at once.
func TestHoldEndsWithItsPod(t *testing.T) {
	l := newRank(t, "ends", 1)
	ring := l.ring(t, 4)
	node := l.nodes[0]
	l.has(t, 1, "slow", node, ring, finalized, "mla-1")
	l.wants(t, 2, "job", ring, 4, nil)
	l.awaitEnding(t, "slow")
	l.createClaim(t, "waits", request("mla", ring.Drivers()[0], 1))
	l.pod(t, 1, "waits", celsetProfile, nil, "waits")
	l.requireRefused(t, "waits", "are held")
	l.deletePod(t, "job")
	l.requireRunning(t, "waits")
	l.let(t, "slow")
}

// TestHigherPriorityBreaksAHold: it has the devices, and who was promised them waits on.
func TestHigherPriorityBreaksAHold(t *testing.T) {
	l := newRank(t, "breaks", 1)
	ring := l.ring(t, 4)
	node := l.nodes[0]
	l.has(t, 1, "slow", node, ring, finalized, "mla-1")
	l.wants(t, 2, "job", ring, 4, nil)
	l.awaitEnding(t, "slow")
	l.createClaim(t, "top", request("mla", ring.Drivers()[0], 1))
	l.pod(t, 3, "top", celsetProfile, nil, "top")
	l.requireRunning(t, "top")
	l.let(t, "slow")
	l.requireGone(t, "slow")
	// What is left of the ring is for anybody now.
	l.createClaim(t, "small", request("mla", ring.Drivers()[0], 1))
	l.pod(t, 1, "small", celsetProfile, nil, "small")
	l.requireRunning(t, "small")
	require.Equal(t, corev1.PodPending, l.lab.pod(t, "job").Status.Phase)
}

// TestPreemptionForExtendedResources: pods with and without claims, in each other's way.
func TestPreemptionForExtendedResources(t *testing.T) {
	minor.Needs(t, kubefeatures.DRAExtendedResource)
	l := newRank(t, "extended", 1)
	family := l.family("mla")
	ring, err := topology.NewRing(family, 4)
	require.NoError(t, err)
	l.publish(t, ring, l.nodes...)
	spec := classOf(family.Driver)
	name := corev1.ResourceName("example.com/" + l.namespace)
	spec.ExtendedResourceName = ptr.To(string(name))
	l.createClassWithSpec(t, family.Driver, spec)
	asks := func(n int64) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			quantity := corev1.ResourceList{name: *resource.NewQuantity(n, resource.DecimalSI)}
			pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: quantity, Limits: quantity}
		}
	}
	l.pod(t, 1, "low", celsetProfile, asks(3))
	l.requireRunning(t, "low")
	l.pod(t, 2, "job", celsetProfile, asks(2))
	l.requireRunning(t, "job")
	l.requireGone(t, "low")
	l.wants(t, 3, "set", ring, 4, nil)
	l.requireRunning(t, "set")
	l.requireGone(t, "job")
	require.Len(t, slices.Compact(l.devicesOf(t, "set")), 4)
}
