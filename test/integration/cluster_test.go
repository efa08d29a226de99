// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/env"
	"github.com/celset/celset/internal/testing/minor"
)

// cluster is what all tests share.
var cluster struct {
	*env.Env
	scheduler *controlplane.Process
}

func TestMain(m *testing.M) { env.Main(m, startCluster) }

// startCluster follows the manifests: RBAC first, and then the scheduler as the
// service account in it.
func startCluster(t testing.TB) {
	cluster.Env = env.Start(t, controlplane.Options{FeatureGates: minor.ClusterGates(), Users: []controlplane.User{env.Scheduler}}, controlplane.Kubectl)
	cluster.ApplyManifests(t, "scheduler/rbac.yaml")
	config, err := sharedSchedulerConfig(t)
	require.NoError(t, err)
	cluster.scheduler = startScheduler(t, "", config)
}

// startScheduler starts a scheduler beside the others, with its configuration and the rights in the
// manifests.
func startScheduler(t testing.TB, name string, config []byte) *controlplane.Process {
	t.Helper()
	return cluster.StartScheduler(t, controlplane.SchedulerOptions{
		Name: name, Config: config, User: env.Scheduler.Name, FeatureGates: minor.SchedulerGates(map[string]bool{"DRADevicePreemption": true}),
	})
}

func client() kubernetes.Interface { return cluster.Client() }

// lab is where one test works.
type lab struct{ *env.Lab }

func newLab(t testing.TB, name string, n int) *lab {
	t.Helper()
	return &lab{cluster.NewLab(t, name, n)}
}
