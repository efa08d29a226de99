// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/env"
)

const namespace = "soak"

// startCluster starts a control plane with nodes, devices and templates. Nobody runs the pods.
func startCluster(t *testing.T, nodes int) *env.Env {
	t.Helper()
	cp := env.Start(t, controlplane.Options{
		SkipKwok: true, ControllerManagerArgs: []string{"--kube-api-qps=500", "--kube-api-burst=500"},
	}, controlplane.CelsetScheduler)
	_, err := cp.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	cp.CreateClass(t, mesh.Drivers()[0])
	for _, k := range append(slices.Clone(kinds), block) {
		env.Create(t, cp.Client().ResourceV1().ResourceClaimTemplates(namespace), k.template())
	}
	names, err := controlplane.CreateNodes(t.Context(), cp.Client(), nodes, controlplane.NodeOptions{Static: true})
	require.NoError(t, err)
	cp.Publish(t, mesh, names...)
	return cp
}

// startScheduler starts celset-scheduler with the configuration in manifests, both profiles in one
// process, and with a client that is not held back: 50 requests a second, the default, are 10 pods.
func startScheduler(t *testing.T, cp *env.Env, name string, gates ...string) *controlplane.Process {
	t.Helper()
	config, err := os.ReadFile(env.Manifest(t, "scheduler", "config.yaml"))
	require.NoError(t, err)
	on := map[string]bool{}
	for _, gate := range gates {
		on[gate] = true
	}
	return cp.StartScheduler(t, controlplane.SchedulerOptions{
		Name: name, Config: append(config, "\nclientConnection: {qps: 500, burst: 500}\n"...), FeatureGates: on,
	})
}
