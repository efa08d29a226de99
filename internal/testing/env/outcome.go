// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// EventuallyPod waits until the pod is as wanted, and tells its story if it does not get so.
func (l *Lab) EventuallyPod(t testing.TB, name, what string, wanted func(context.Context, *corev1.Pod) (bool, error)) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	err := wait.PollUntilContextTimeout(t.Context(), pollPeriod, Patience, true, func(ctx context.Context) (bool, error) {
		current, err := l.pods().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		pod = current
		return wanted(ctx, pod)
	})
	if err != nil {
		t.Fatalf("pod %s/%s does not become %s: %v\n%s", l.Namespace, name, what, err, l.story(t, pod))
	}
	return pod
}

// story is what the API tells about a pod.
func (l *Lab) story(t testing.TB, pod *corev1.Pod) string {
	var story strings.Builder
	fmt.Fprintf(&story, "phase %s, node %q\n", pod.Status.Phase, pod.Spec.NodeName)
	for _, c := range pod.Status.Conditions {
		fmt.Fprintf(&story, "condition %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	events, err := l.Notes(t.Context(), pod, "")
	if err != nil {
		fmt.Fprintln(&story, err)
	}
	for _, note := range events {
		fmt.Fprintf(&story, "event %s\n", note)
	}
	return story.String()
}

// Notes are the texts of a pod's events for a reason, or for any.
func (l *Lab) Notes(ctx context.Context, pod *corev1.Pod, reason string) ([]string, error) {
	events, err := l.Client().EventsV1().Events(l.Namespace).List(ctx, metav1.ListOptions{})
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

// RequireRunning waits until the pods run, or are bound where nobody runs pods.
func (l *Lab) RequireRunning(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		l.EventuallyPod(t, name, "Running", func(_ context.Context, pod *corev1.Pod) (bool, error) {
			return pod.Status.Phase == corev1.PodRunning || l.static && pod.Spec.NodeName != "", nil
		})
	}
}

// RequireRefused waits until condition and event of the pod say that it can't be scheduled, both
// with all of the texts, and checks that none of its claims got anything.
func (l *Lab) RequireRefused(t testing.TB, name string, texts ...string) {
	t.Helper()
	pod := l.EventuallyPod(t, name, fmt.Sprintf("refused with %q", texts), func(_ context.Context, pod *corev1.Pod) (bool, error) {
		return IsRefused(pod, texts...), nil
	})
	l.AwaitEvent(t, pod, "FailedScheduling", texts...)
	require.Empty(t, pod.Spec.NodeName)
	for _, claim := range l.ClaimsOf(t, pod) {
		require.Nil(t, claim.Status.Allocation, "allocation of claim %s", claim.Name)
		require.Empty(t, claim.Status.ReservedFor, "users of claim %s", claim.Name)
	}
}

// AwaitEvent waits until an event of the pod says all of the texts. Unlike the condition, it is
// still there when the pod has been tried again.
func (l *Lab) AwaitEvent(t testing.TB, pod *corev1.Pod, reason string, texts ...string) {
	t.Helper()
	Eventually(t, fmt.Sprintf("event %s of pod %s says %q", reason, pod.Name, texts), func(ctx context.Context) (string, error) {
		notes, err := l.Notes(ctx, pod, reason)
		if err != nil || !slices.ContainsFunc(notes, func(note string) bool { return ContainsAll(note, texts) }) {
			return fmt.Sprintf("there are %q", notes), err
		}
		return "", nil
	})
}

// IsRefused tells whether the condition of the pod says, with all of the texts, that it can't be
// scheduled.
func IsRefused(pod *corev1.Pod, texts ...string) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && ContainsAll(c.Message, texts)
	})
}

// ContainsAll tells whether a message has all of the texts.
func ContainsAll(message string, texts []string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(message, text) })
}

// ClaimsOf reads the claims that a pod uses, from templates or not.
func (l *Lab) ClaimsOf(t testing.TB, pod *corev1.Pod) []*resourceapi.ResourceClaim {
	t.Helper()
	claims := make([]*resourceapi.ResourceClaim, 0, len(pod.Spec.ResourceClaims))
	for i := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		require.NoError(t, err)
		claims = append(claims, l.Claim(t, *name))
	}
	return claims
}

// Pod reads a pod.
func (l *Lab) Pod(t testing.TB, name string) *corev1.Pod {
	t.Helper()
	pod, err := l.pods().Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return pod
}

// Claim reads a claim.
func (l *Lab) Claim(t testing.TB, name string) *resourceapi.ResourceClaim {
	t.Helper()
	claim, err := l.Client().ResourceV1().ResourceClaims(l.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return claim
}

// DevicesOf names the devices of the pod's claims, in the order of the allocation.
func (l *Lab) DevicesOf(t testing.TB, podName string) []string {
	t.Helper()
	var names []string
	for _, claim := range l.ClaimsOf(t, l.Pod(t, podName)) {
		names = append(names, DeviceNames(claim)...)
	}
	return names
}

// DeviceNames is empty for a claim without allocation.
func DeviceNames(claim *resourceapi.ResourceClaim) []string {
	if claim.Status.Allocation == nil {
		return nil
	}
	var names []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		names = append(names, result.Device)
	}
	return names
}

// RequireFreed waits until no pod uses a claim and its devices are given back.
func (l *Lab) RequireFreed(t testing.TB, claim string) {
	t.Helper()
	Eventually(t, "claim "+claim+" gives its devices back", func(ctx context.Context) (string, error) {
		claim, err := l.Client().ResourceV1().ResourceClaims(l.Namespace).Get(ctx, claim, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		return strings.Join(DeviceNames(claim), ", "), nil
	})
}
