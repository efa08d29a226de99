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

	"github.com/celset/celset/internal/topology"
)

// The classes in manifests/examples/deviceclasses.yaml and their drivers.
const (
	exampleRing = "mla.example.com"
	exampleMesh = "mesh.example.com"
)

func TestAPIServerAcceptsManifestsAsTheyAre(t *testing.T) {
	t.Parallel()
	l := newLab(t, "dry-run", 0)
	files, err := filepath.Glob(manifest("examples", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, err := kubectl(t.Context(), l.namespace, "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", file)
			require.NoError(t, err)
		})
	}
	t.Run("rbac.yaml", func(t *testing.T) {
		// It has namespaces of its own.
		_, err := kubectl(t.Context(), "", "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict",
			"-f", manifest("scheduler", "rbac.yaml"))
		require.NoError(t, err)
	})
}

// TestExamples tells the stories of the two examples, each on a node where the
// devices that are free and come first are not what the pod wants: a plain claim
// for as many devices gets those, our profile gives the example the set that it asks
// for, and the stock profile refuses it although the same devices are free.
func TestExamples(t *testing.T) {
	t.Parallel()
	l := newLab(t, "examples", 2)
	ring, err := topology.NewRing(topology.Family{Driver: exampleRing, Prefix: "mla"}, 8)
	require.NoError(t, err)
	mesh, err := topology.NewMesh(topology.Family{Driver: exampleMesh, Prefix: "mesh"}, 3, 3)
	require.NoError(t, err)
	l.publish(t, ring, l.nodes[0])
	l.publish(t, mesh, l.nodes[1])
	_, err = kubectl(t.Context(), "", "apply", "-f", manifest("examples", "deviceclasses.yaml"))
	require.NoError(t, err)
	l.occupy(t, l.nodes[0], ring, "mla-2")
	l.occupy(t, l.nodes[1], mesh, "mesh-1")

	t.Run("ring-4-connected", func(t *testing.T) {
		t.Parallel()
		l.tellStory(t, story{
			file: "ring-4-connected.yaml", pod: "ring", class: exampleRing,
			firstFit: []string{"mla-0", "mla-1", "mla-3", "mla-4"},
			isWanted: ring.Contiguous,
		})
	})
	t.Run("grid-2x2", func(t *testing.T) {
		t.Parallel()
		l.tellStory(t, story{
			file: "grid-2x2.yaml", pod: "grid", class: exampleMesh,
			firstFit: []string{"mesh-0", "mesh-2", "mesh-3", "mesh-4"},
			isWanted: func(names []string) bool { return mesh.IsBlock(names, 2, 2) },
		})
	})
}

// story is what an example is expected to show.
type story struct {
	file  string
	pod   string
	class string
	// firstFit is what four devices are without a constraint.
	firstFit []string
	isWanted func([]string) bool
}

func (l *lab) tellStory(t *testing.T, s story) {
	t.Helper()
	file := manifest("examples", s.file)

	plain := "plain-" + s.pod
	l.run(t, plain, stockProfile, request("any", s.class, 4))
	l.requireRunning(t, plain)
	require.ElementsMatch(t, s.firstFit, l.devicesOf(t, plain))
	require.False(t, s.isWanted(s.firstFit), "else the constraint makes no difference here")
	l.deletePod(t, plain)
	l.requireFreed(t, plain)

	_, err := kubectl(t.Context(), l.namespace, "apply", "-f", file)
	require.NoError(t, err)
	l.requireRunning(t, s.pod)
	claims := l.claimsOf(t, l.pod(t, s.pod))
	require.Len(t, claims, 1)
	devices := deviceNames(claims[0])
	require.Len(t, devices, 4)
	require.True(t, s.isWanted(devices), "got %v", devices)
	l.deletePod(t, s.pod)
	l.requireFreed(t, claims[0].Name)

	stock := podIn(t, file)
	stock.Name = "stock-" + s.pod
	stock.Spec.SchedulerName = stockProfile
	_, err = client().CoreV1().Pods(l.namespace).Create(t.Context(), stock, metav1.CreateOptions{})
	require.NoError(t, err)
	l.requireRefused(t, stock.Name, "cannot allocate all claims")
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
