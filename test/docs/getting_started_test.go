// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/env"
)

const (
	startPage = "docs/getting-started.md"
	patience  = 5 * time.Minute
)

// TestGettingStarted does what the page says, one block after the other, and compares
// what comes of it with what the page says comes of it.
func TestGettingStarted(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", startPage))
	require.NoError(t, err)
	all, err := parse(startPage, string(content))
	require.NoError(t, err)
	cp := env.Start(t, controlplane.Options{})
	cp.StartScheduler(t, controlplane.SchedulerOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var said []string
	for _, b := range all {
		switch b.language {
		case "yaml":
			_, err := controlplane.Apply(ctx, cp.RESTConfig(), []byte(b.text), controlplane.ApplyOptions{})
			require.NoError(t, err, b)
			waitUntilSettled(ctx, t, cp.Client(), b)
		case "text":
			said = append(said, strings.TrimSpace(b.text))
		}
	}
	require.Len(t, said, 3)
	requireClaims(ctx, t, cp.Client(), said[0])
	requireEvent(ctx, t, cp.Client(), "ring-again", said[1], said[2])

	grace := int64(0)
	require.NoError(t, cp.Client().CoreV1().Pods("default").Delete(ctx, "ring", metav1.DeleteOptions{GracePeriodSeconds: &grace}))
	waitScheduled(ctx, t, cp.Client(), "ring-again")
}

// waitUntilSettled waits for the pods of the block, but for the one that is to wait.
func waitUntilSettled(ctx context.Context, t *testing.T, client kubernetes.Interface, b block) {
	t.Helper()
	for _, object := range objects(t, b) {
		if object.GetKind() == "Pod" && object.GetName() != "ring-again" {
			waitScheduled(ctx, t, client, object.GetName())
		}
	}
}

func waitScheduled(ctx context.Context, t *testing.T, client kubernetes.Interface, pod string) {
	t.Helper()
	require.NoError(t, wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		found, err := client.CoreV1().Pods("default").Get(ctx, pod, metav1.GetOptions{})
		return err == nil && found.Spec.NodeName != "", err
	}), "pod %s is not scheduled", pod)
}

// requireClaims compares the claims that have devices with the lines of a table. The ends
// of generated names differ.
func requireClaims(ctx context.Context, t *testing.T, client kubernetes.Interface, table string) {
	t.Helper()
	claims, err := client.ResourceV1().ResourceClaims("default").List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	got := map[string]string{}
	for _, claim := range claims.Items {
		if claim.Status.Allocation == nil {
			continue
		}
		var devices []string
		for _, result := range claim.Status.Allocation.Devices.Results {
			devices = append(devices, result.Device)
		}
		got[strings.Split(claim.Name, "-")[0]] = strings.Join(devices, ",")
	}
	want := map[string]string{}
	for _, line := range strings.Split(table, "\n")[1:] {
		columns := strings.Fields(line)
		require.Len(t, columns, 2)
		want[strings.Split(columns[0], "-")[0]] = columns[1]
	}
	require.Equal(t, want, got)
}

func requireEvent(ctx context.Context, t *testing.T, client kubernetes.Interface, pod string, texts ...string) {
	t.Helper()
	var last string
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		found, err := client.CoreV1().Pods("default").Get(ctx, pod, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, condition := range found.Status.Conditions {
			if condition.Type == corev1.PodScheduled {
				last = condition.Message
				return containsAll(condition.Message, texts), nil
			}
		}
		return false, nil
	})
	require.NoError(t, err, "pod %s: the page says %q, the condition said %q", pod, texts, last)
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}
