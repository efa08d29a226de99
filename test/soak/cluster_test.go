// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/controlplane"
)

const (
	namespace = "soak"
	// concurrentRequests limits those in flight while the cluster is set up.
	concurrentRequests = 16
)

// startCluster starts a control plane with nodes, devices and templates. Nobody runs the pods.
func startCluster(t *testing.T, nodes int) *controlplane.ControlPlane {
	t.Helper()
	_, err := controlplane.Build(t.Context(), "", os.Stderr, controlplane.CelsetScheduler)
	require.NoError(t, err)
	cp, err := controlplane.Start(t.Context(), controlplane.Options{
		DataDir: t.TempDir(), Progress: os.Stderr, SkipKwok: true,
		ControllerManagerArgs: []string{"--kube-api-qps=500", "--kube-api-burst=500"},
	})
	require.NoError(t, err)
	t.Cleanup(cp.Stop)
	createObjects(t, cp, nodes)
	return cp
}

// startScheduler starts celset-scheduler with the configuration in manifests: both profiles in one
// process.
func startScheduler(t *testing.T, cp *controlplane.ControlPlane, name string, gates ...string) *controlplane.Process {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	require.NoError(t, err)
	options := controlplane.SchedulerOptions{
		Name:         name,
		Binary:       cp.Binary(controlplane.CelsetScheduler),
		Config:       config(t, filepath.Join(root, "manifests", "scheduler", "config.yaml")),
		FeatureGates: map[string]bool{v1alpha1.FeatureGate: true},
	}
	for _, gate := range gates {
		options.FeatureGates[gate] = true
	}
	scheduler, err := cp.StartScheduler(t.Context(), options)
	require.NoError(t, err)
	return scheduler
}

// config is the configuration in a file, with a client that is not held back: 50 requests
// a second, the default, are 10 pods.
func config(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return append(content, "\nclientConnection: {qps: 500, burst: 500}\n"...)
}

func createObjects(t *testing.T, cp *controlplane.ControlPlane, nodes int) {
	t.Helper()
	client, ctx := cp.Client(), t.Context()
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	driver := mesh.Drivers()[0]
	_, err = client.ResourceV1().DeviceClasses().Create(ctx, &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: driver},
		Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{
			{CEL: &resourceapi.CELDeviceSelector{Expression: "device.driver == '" + driver + "'"}},
		}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	for _, k := range append(slices.Clone(kinds), block) {
		template, err := k.template()
		require.NoError(t, err)
		_, err = client.ResourceV1().ResourceClaimTemplates(namespace).Create(ctx, template, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	names, err := controlplane.CreateNodes(ctx, client, nodes, controlplane.NodeOptions{Static: true})
	require.NoError(t, err)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentRequests)
	for _, name := range names {
		slices, err := mesh.ResourceSlices(name)
		require.NoError(t, err)
		for _, slice := range slices {
			group.Go(func() error {
				_, err := client.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{})
				return err
			})
		}
	}
	require.NoError(t, group.Wait())
}
