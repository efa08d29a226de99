// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/celset/celset/test/internal/ledger"
	"github.com/celset/celset/test/topologydriver/cdi"
)

const (
	pollPeriod = 100 * time.Millisecond
	// patience is the limit for each wait, enough for a busy machine. In TestChurn, a pod waits for other pods and for a
	// kubelet that was killed.
	patience = 3 * time.Minute
)

// waitPod waits until done returns true for the pod. If done returns an error, waitPod fails at once.
func waitPod(ctx context.Context, name, what string, done func(*corev1.Pod) bool) (*corev1.Pod, error) {
	var pod *corev1.Pod
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(ctx context.Context) (_ bool, err error) {
		pod, err = client().CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && done(pod), err
	})
	if err != nil {
		return nil, fmt.Errorf("pod %s: wait until %s: %w; %s", name, what, err, events(ctx, name))
	}
	return pod, nil
}

func waitRunning(ctx context.Context, name string) (*corev1.Pod, error) {
	return waitPod(ctx, name, "it runs", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
}

func waitSucceeded(ctx context.Context, name string) (*corev1.Pod, error) {
	return waitPod(ctx, name, "it has ended", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
}

// events returns the events of a pod as text, for messages about failures.
func events(ctx context.Context, pod string) string {
	list, err := client().EventsV1().Events(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.Set{"regarding.name": pod}.String(),
	})
	if err != nil {
		return err.Error()
	}
	lines := []string{"events:"}
	for _, event := range list.Items {
		lines = append(lines, event.Reason+": "+event.Note)
	}
	return strings.Join(lines, "\n")
}

// waitEvent waits for an event of a pod that contains all of the texts.
func waitEvent(ctx context.Context, pod string, texts ...string) error {
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(ctx context.Context) (bool, error) {
		for event := range strings.SplitSeq(events(ctx, pod), "\n") {
			if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(event, text) }) {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("pod %s: no event says %q: %w; %s", pod, texts, err, events(ctx, pod))
	}
	return nil
}

// remove deletes pods and waits until the pods and their claims are gone.
func remove(ctx context.Context, pods ...string) error {
	var errs []error
	for _, name := range pods {
		err := client().CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{})
		if !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var left []string
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(ctx context.Context) (bool, error) {
		var err error
		left, err = remaining(ctx, pods)
		return err == nil && len(left) == 0, err
	})
	if err != nil {
		return fmt.Errorf("wait until %v are gone: %w", left, err)
	}
	return nil
}

// remaining returns which of the pods, and of the claims that were created for them, still exist.
func remaining(ctx context.Context, pods []string) ([]string, error) {
	var left []string
	list, err := client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, pod := range list.Items {
		if slices.Contains(pods, pod.Name) {
			left = append(left, "pod "+pod.Name)
		}
	}
	claims, err := client().ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, claim := range claims.Items {
		for _, owner := range claim.OwnerReferences {
			if slices.Contains(pods, owner.Name) {
				left = append(left, "claim "+claim.Name)
			}
		}
	}
	return left, nil
}

// log waits until the output of a pod's container is complete, and returns its lines. It reads the log through the API server
// and the kubelet. It retries after errors, because a restarted kubelet takes a moment to find its pods.
func log(ctx context.Context, pod string) ([]string, error) {
	var lines []string
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(ctx context.Context) (bool, error) {
		content, err := client().CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(ctx)
		last = err
		lines = strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
		return err == nil && strings.HasPrefix(lines[len(lines)-1], "This container has "), nil
	})
	if err != nil {
		return nil, fmt.Errorf("log of pod %s: %w; last: %q", pod, errors.Join(err, last), lines)
	}
	return lines, nil
}

// claimOf returns the name of the claim that was created for a pod, from a template or for extended resources.
func claimOf(pod *corev1.Pod) (string, error) {
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		return extended.ResourceClaimName, nil
	}
	if len(pod.Status.ResourceClaimStatuses) != 1 || pod.Status.ResourceClaimStatuses[0].ResourceClaimName == nil {
		return "", fmt.Errorf("pod %s has no claim", pod.Name)
	}
	return *pod.Status.ResourceClaimStatuses[0].ResourceClaimName, nil
}

// check compares the devices in a container with the claim's status and with the topology, and returns their names.
func (s *realStory) check(ctx context.Context, name string) ([]string, error) {
	pod, err := client().CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	allocated, err := s.allocated(ctx, pod)
	if err != nil {
		return nil, err
	}
	lines, err := log(ctx, name)
	if err != nil {
		return nil, err
	}
	var seen []string
	for _, line := range lines[:len(lines)-1] {
		device, err := s.deviceIn(line)
		if err != nil {
			return nil, fmt.Errorf("pod %s: %w", name, err)
		}
		seen = append(seen, device)
	}
	slices.Sort(seen)
	if diff := cmp.Diff(allocated, seen); diff != "" {
		return nil, fmt.Errorf("pod %s: the container does not see what its claim was allocated:\n%s", name, diff)
	}
	if !s.Holds(seen) {
		return nil, fmt.Errorf("pod %s: the container sees %v, which are not connected as they should be", name, seen)
	}
	return seen, nil
}

// deviceIn parses an environment variable of a container. It returns the name of the device, and requires that the device's
// attributes are right.
func (s *realStory) deviceIn(variable string) (string, error) {
	name, value, _ := strings.Cut(variable, "=")
	told, err := cdi.Parse(value)
	if err != nil {
		return "", err
	}
	device, known := s.Topology.Device(told.Device)
	if !known || told.Driver != s.Driver() || told.Pool != cluster.node.Name() || name != cdi.Variable(told.Driver, told.Device, "") {
		return "", fmt.Errorf("there is no such device: %s", variable)
	}
	want := (cdi.Device{Driver: told.Driver, Pool: told.Pool, Name: told.Device, Attributes: device.Attributes}).Value()
	if value != want {
		return "", fmt.Errorf("device %s: the container was told %q, but it is %q", told.Device, value, want)
	}
	return told.Device, nil
}

// allocated returns the devices in the status of a pod's claim, sorted. If the pod has ended and its claim is gone, they come
// from the ledger. The result includes devices of other drivers and nodes, so that tests notice them.
func (s *realStory) allocated(ctx context.Context, pod *corev1.Pod) ([]string, error) {
	name, err := claimOf(pod)
	if err != nil {
		return nil, err
	}
	claim, err := client().ResourceV1().ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	devices := ledger.DevicesOf(claim)
	if len(devices) == 0 {
		if devices, err = cluster.ledger.devices(ctx, pod.UID); err != nil {
			return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
		}
	}
	for i, device := range devices {
		devices[i] = strings.TrimPrefix(device, s.Driver()+"/"+cluster.node.Name()+"/")
	}
	slices.Sort(devices)
	return devices, nil
}

// mustRun creates pods, waits until they run, checks the devices in their containers and returns the devices of all pods.
func (s *realStory) mustRun(t *testing.T, pods ...string) []string {
	t.Helper()
	var devices []string
	for _, name := range pods {
		require.NoError(t, s.create(t.Context(), name))
	}
	for _, name := range pods {
		_, err := waitRunning(t.Context(), name)
		require.NoError(t, err)
		seen, err := s.check(t.Context(), name)
		require.NoError(t, err)
		devices = append(devices, seen...)
	}
	slices.Sort(devices)
	return devices
}

// removeAtEnd removes pods when the test ends, and checks that the driver has removed their CDI files.
func removeAtEnd(t *testing.T, pods ...string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, remove(ctx, pods...))
		require.NoError(t, waitUnprepared(ctx))
	})
}
