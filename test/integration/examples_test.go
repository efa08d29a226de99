// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/story"
)

func TestAPIServerAcceptsManifestsAsTheyAre(t *testing.T) {
	t.Parallel()
	l := newLab(t, "dry-run", 0)
	files, err := filepath.Glob(env.Manifest(t, "examples", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		if filepath.Base(file) == "device-attributes.yaml" {
			// The kind needs a CRD. test/manifests applies this example.
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, err := cluster.Kubectl(t, l.Namespace, "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", file)
			require.NoError(t, err)
		})
	}
	t.Run("rbac.yaml", func(t *testing.T) {
		// The manifest sets the namespaces of its objects itself.
		_, err := cluster.Kubectl(t, "", "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict",
			"-f", env.Manifest(t, "scheduler", "rbac.yaml"))
		require.NoError(t, err)
	})
}

// TestExamples runs both examples. The first free devices of the node do not satisfy the example's constraint. A claim for as
// many devices without a constraint gets these first devices. The example in our profile gets devices that satisfy the
// constraint. In the stock profile it stays pending.
func TestExamples(t *testing.T) {
	t.Parallel()
	l := newLab(t, "examples", 2)
	ring, grid := story.Ring(), story.Grid()
	l.Publish(t, ring.Topology, l.Nodes[0])
	l.Publish(t, grid.Topology, l.Nodes[1])
	_, err := cluster.Kubectl(t, "", "apply", "-f", env.Manifest(t, "examples", "deviceclasses.yaml"))
	require.NoError(t, err)
	l.Occupy(t, l.Nodes[0], ring.Topology, "mla-2")
	l.Occupy(t, l.Nodes[1], grid.Topology, "mla-1")

	// The keys are the examples. The values are the first four free devices, which a claim without a constraint gets.
	for told, firstFit := range map[*story.Story][]string{
		ring: {"mla-0", "mla-1", "mla-3", "mla-4"},
		grid: {"mla-0", "mla-2", "mla-3", "mla-4"},
	} {
		t.Run(told.Pod, func(t *testing.T) {
			t.Parallel()
			l.tell(t, told, firstFit)
		})
	}
}

func (l *lab) tell(t *testing.T, s *story.Story, firstFit []string) {
	t.Helper()
	file := env.Manifest(t, "examples", s.Manifest)

	plain := "plain-" + s.Pod
	l.Run(t, plain, env.StockProfile, env.Request("any", s.Driver(), 4))
	l.RequireRunning(t, plain)
	require.ElementsMatch(t, firstFit, l.DevicesOf(t, plain))
	require.False(t, s.Holds(firstFit), "else the constraint makes no difference here")
	l.DeletePod(t, plain)
	l.RequireFreed(t, plain)

	_, err := cluster.Kubectl(t, l.Namespace, "apply", "-f", file)
	require.NoError(t, err)
	l.RequireRunning(t, s.Pod)
	claims := l.ClaimsOf(t, l.Pod(t, s.Pod))
	require.Len(t, claims, 1)
	devices := env.DeviceNames(claims[0])
	require.Len(t, devices, 4)
	require.True(t, s.Holds(devices), "got %v", devices)
	l.DeletePod(t, s.Pod)
	l.RequireFreed(t, claims[0].Name)

	stock := podIn(t, file)
	stock.Name = "stock-" + s.Pod
	stock.Spec.SchedulerName = env.StockProfile
	_, err = client().CoreV1().Pods(l.Namespace).Create(t.Context(), stock, metav1.CreateOptions{})
	require.NoError(t, err)
	l.RequireRefused(t, stock.Name, "cannot allocate all claims")
}

// podIn reads the first pod in a manifest.
func podIn(t *testing.T, path string) *corev1.Pod {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		var object unstructured.Unstructured
		err := decoder.Decode(&object)
		require.False(t, errors.Is(err, io.EOF), "%s has no pod", path)
		require.NoError(t, err)
		if object.GetKind() == "Pod" {
			pod := &corev1.Pod{}
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, pod))
			return pod
		}
	}
}
