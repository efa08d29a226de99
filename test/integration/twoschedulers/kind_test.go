// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package twoschedulers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/render"
)

const manifests = "../../../manifests"

// TestDevicesOfKind has the examples served with the devices that hack/kind-demo.sh
// publishes, on nodes named as kind names them. The script itself needs Docker.
func TestDevicesOfKind(t *testing.T) {
	c := start(t)
	c.install(t, "second-scheduler")
	for _, file := range []string{"examples/deviceclasses.yaml", "examples/ring-4-connected.yaml", "examples/grid-2x2.yaml"} {
		content, err := os.ReadFile(filepath.Join(manifests, file))
		require.NoError(t, err)
		_, err = controlplane.Apply(t.Context(), c.RESTConfig(), content, controlplane.ApplyOptions{})
		require.NoError(t, err, file)
	}
	workers := topologiesOfKind(t)
	require.Len(t, workers, 2)
	for name, topology := range workers {
		created, err := controlplane.CreateNodes(t.Context(), c.Client(), 1, controlplane.NodeOptions{
			Prefix: name, Labels: map[string]string{corev1.LabelHostname: name}, Static: true,
		})
		require.NoError(t, err)
		c.startDriver(t, created[0], "topology-driver-"+topology)
	}
	for pod, template := range map[string]string{"ring": "4-connected-devices", "grid": "2x2-device-grid"} {
		c.createClaimOf(t, pod, template)
	}
	served := c.requireServed(t, "served-ring", "served-grid")
	require.Equal(t, "celset-worker-0", served["served-ring"].node())
	require.Equal(t, []string{"mla-0", "mla-1", "mla-2", "mla-3"}, slices.Sorted(slices.Values(served["served-ring"].names())))
	require.Equal(t, "celset-worker2-0", served["served-grid"].node())
	require.Len(t, served["served-grid"], 4)
}

// topologiesOfKind are those of the workers in kind's configuration, by the names that
// kind gives them.
func topologiesOfKind(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(manifests, "kind", "cluster.yaml"))
	require.NoError(t, err)
	var config struct {
		Name  string
		Nodes []struct {
			Role   string
			Labels map[string]string
		}
	}
	require.NoError(t, yaml.Unmarshal(content, &config))
	result := map[string]string{}
	name := config.Name + "-worker"
	for _, node := range config.Nodes {
		if node.Role == "worker" {
			result[name] = node.Labels["celset.dev/topology"]
			name = fmt.Sprint(config.Name, "-worker", len(result)+1)
		}
	}
	return result
}

// startDriver runs the topology driver as the DaemonSet of an overlay would on a node.
func (c *cluster) startDriver(t *testing.T, node, overlay string) {
	t.Helper()
	objects, err := render.Kustomization(filepath.Join(manifests, "overlays", overlay))
	require.NoError(t, err)
	set, err := render.Find(objects, "DaemonSet", "celset-topology-driver")
	require.NoError(t, err)
	args, err := render.Args(set)
	require.NoError(t, err)
	// Paths of sockets are short.
	dir, err := os.MkdirTemp("", "celset-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	command := exec.CommandContext(t.Context(), c.Binary(topologyDriver), append(args,
		"--kubeconfig="+c.Kubeconfig(), "--node-name="+node, "--kubelet-root-dir="+dir, "--cdi-dir="+filepath.Join(dir, "cdi"),
		"--health-probe-bind-address=0", "--metrics-bind-address=0")...)
	command.Stdout, command.Stderr = t.Output(), t.Output()
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	require.NoError(t, command.Start())
	// The context ends before this, and with it the driver.
	t.Cleanup(func() { require.NoError(t, ignoreCanceled(command.Wait())) })
}

// ignoreCanceled drops what a program says that was to end, and ended well.
func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// createClaimOf does the work of the controller that creates claims, for a pod like an
// example: it has the claim by name.
func (c *cluster) createClaimOf(t *testing.T, example, template string) {
	t.Helper()
	name := "served-" + example
	source, err := c.Client().ResourceV1().ResourceClaimTemplates(namespace).Get(t.Context(), template, metav1.GetOptions{})
	require.NoError(t, err)
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: source.Spec.Spec}
	_, err = c.Client().ResourceV1().ResourceClaims(namespace).Create(t.Context(), claim, metav1.CreateOptions{})
	require.NoError(t, err)
	pod := c.pod(t.Context(), t, example)
	copied := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: pod.Spec}
	copied.Spec.ResourceClaims[0].ResourceClaimTemplateName = nil
	copied.Spec.ResourceClaims[0].ResourceClaimName = &name
	_, err = c.Client().CoreV1().Pods(namespace).Create(t.Context(), copied, metav1.CreateOptions{})
	require.NoError(t, err)
}
