// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

const (
	pollPeriod = 100 * time.Millisecond

	// patience is below the five minutes after which a scheduler tries pods
	// again that nothing has happened for: what succeeds in time was woken up.
	patience = 3 * time.Minute
)

// eventually waits until check has nothing to complain about.
func eventually(t *testing.T, what string, check func(context.Context) (complaint string, err error)) {
	t.Helper()
	complaint := ""
	err := wait.PollUntilContextTimeout(t.Context(), pollPeriod, patience, true, func(ctx context.Context) (done bool, err error) {
		complaint, err = check(ctx)
		return err == nil && complaint == "", err
	})
	require.NoError(t, err, "%s: %s", what, complaint)
}

// eventuallyPod waits until the pod is as wanted, and tells its story if it does
// not get so.
func (l *lab) eventuallyPod(t *testing.T, name, what string, wanted func(context.Context, *corev1.Pod) (bool, error)) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	err := wait.PollUntilContextTimeout(t.Context(), pollPeriod, patience, true, func(ctx context.Context) (bool, error) {
		current, err := client().CoreV1().Pods(l.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		pod = current
		return wanted(ctx, pod)
	})
	if err != nil {
		t.Fatalf("pod %s/%s does not become %s: %v\n%s", l.namespace, name, what, err, l.story(t, pod))
	}
	return pod
}

// story is what the API tells about a pod.
func (l *lab) story(t *testing.T, pod *corev1.Pod) string {
	var story strings.Builder
	fmt.Fprintf(&story, "phase %s, node %q\n", pod.Status.Phase, pod.Spec.NodeName)
	for _, c := range pod.Status.Conditions {
		fmt.Fprintf(&story, "condition %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	events, err := l.notes(t.Context(), pod, "")
	if err != nil {
		fmt.Fprintln(&story, err)
	}
	for _, note := range events {
		fmt.Fprintf(&story, "event %s\n", note)
	}
	return story.String()
}

// notes are the texts of a pod's events for a reason, or for any.
func (l *lab) notes(ctx context.Context, pod *corev1.Pod, reason string) ([]string, error) {
	events, err := client().EventsV1().Events(l.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var notes []string
	for _, event := range events.Items {
		if event.Regarding.UID == pod.UID && (reason == "" || event.Reason == reason) {
			notes = append(notes, event.Note)
		}
	}
	return notes, nil
}

// requireRunning waits until the pods run.
func (l *lab) requireRunning(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		l.eventuallyPod(t, name, "Running", func(_ context.Context, pod *corev1.Pod) (bool, error) {
			return pod.Status.Phase == corev1.PodRunning, nil
		})
	}
}

// requireRefused waits until condition and event of the pod say that it can't be
// scheduled, both with all of the texts, and checks that none of its claims got
// anything.
func (l *lab) requireRefused(t *testing.T, name string, texts ...string) {
	t.Helper()
	pod := l.eventuallyPod(t, name, fmt.Sprintf("refused with %q", texts), func(_ context.Context, pod *corev1.Pod) (bool, error) {
		return isRefused(pod, texts...), nil
	})
	l.awaitEvent(t, pod, "FailedScheduling", texts...)
	require.Empty(t, pod.Spec.NodeName)
	for _, claim := range l.claimsOf(t, pod) {
		require.Nil(t, claim.Status.Allocation, "allocation of claim %s", claim.Name)
		require.Empty(t, claim.Status.ReservedFor, "users of claim %s", claim.Name)
	}
}

// awaitEvent waits until an event of the pod says all of the texts. Unlike the
// condition, it is still there when the pod has been tried again.
func (l *lab) awaitEvent(t *testing.T, pod *corev1.Pod, reason string, texts ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("event %s of pod %s says %q", reason, pod.Name, texts), func(ctx context.Context) (string, error) {
		notes, err := l.notes(ctx, pod, reason)
		if err != nil || !slices.ContainsFunc(notes, func(note string) bool { return containsAll(note, texts) }) {
			return fmt.Sprintf("there are %q", notes), err
		}
		return "", nil
	})
}

// isRefused tells whether the condition of the pod says, with all of the texts,
// that it can't be scheduled.
func isRefused(pod *corev1.Pod, texts ...string) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && containsAll(c.Message, texts)
	})
}

func containsAll(message string, texts []string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(message, text) })
}

// claimsOf reads the claims that a pod uses, from templates or not.
func (l *lab) claimsOf(t *testing.T, pod *corev1.Pod) []*resourceapi.ResourceClaim {
	t.Helper()
	claims := make([]*resourceapi.ResourceClaim, 0, len(pod.Spec.ResourceClaims))
	for i := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		require.NoError(t, err)
		claims = append(claims, l.claim(t, *name))
	}
	return claims
}

func (l *lab) pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	pod, err := client().CoreV1().Pods(l.namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return pod
}

func (l *lab) claim(t *testing.T, name string) *resourceapi.ResourceClaim {
	t.Helper()
	claim, err := client().ResourceV1().ResourceClaims(l.namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return claim
}

// devicesOf names the devices of the pod's claims, in the order of the
// allocation.
func (l *lab) devicesOf(t *testing.T, podName string) []string {
	t.Helper()
	var names []string
	for _, claim := range l.claimsOf(t, l.pod(t, podName)) {
		names = append(names, deviceNames(claim)...)
	}
	return names
}

// deviceNames is empty for a claim without allocation.
func deviceNames(claim *resourceapi.ResourceClaim) []string {
	if claim.Status.Allocation == nil {
		return nil
	}
	var names []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		names = append(names, result.Device)
	}
	return names
}

// requireFreed waits until no pod uses a claim and its devices are given back.
func (l *lab) requireFreed(t *testing.T, claim string) {
	t.Helper()
	eventually(t, "claim "+claim+" gives its devices back", func(ctx context.Context) (string, error) {
		claim, err := client().ResourceV1().ResourceClaims(l.namespace).Get(ctx, claim, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		return strings.Join(deviceNames(claim), ", "), nil
	})
}
