// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/features"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/env"
	"github.com/celset/celset/internal/testing/guarded"
	"github.com/celset/celset/internal/testing/history"
	"github.com/celset/celset/internal/testing/minor"
)

// cluster is what all tests share. They run one after the other, because each has
// schedulers of its own, which are responsible for all pods.
var cluster struct {
	*env.Env
	// history is what all programs do to claims.
	history *history.History
	// controllers are kube-controller-manager, which reaches the API server through a gate,
	// too.
	controllers *replica
}

func client() kubernetes.Interface { return cluster.Client() }

func TestMain(m *testing.M) { env.Main(m, env.NoLeaks, startCluster) }

// gates are those of all that takes part: one kind of the pods needs one, which is off in older
// versions.
var gates = minor.TurnOn(features.DRAExtendedResource)

// startCluster starts everything but schedulers. Nobody runs the pods: that they are
// bound is all that a scheduler is responsible for.
func startCluster(t testing.TB) {
	cluster.Env = env.Start(t, controlplane.Options{
		SkipKwok: true,
		// It is started behind a gate.
		SkipControllerManager: true,
		FeatureGates:          gates,
		Users:                 []controlplane.User{env.Scheduler, env.Webhook},
	}, controlplane.CelsetScheduler, controlplane.KubeScheduler, guarded.Binary)
	cluster.history = history.New()
	startControllers(t)
	cluster.ApplyManifests(t, "scheduler/rbac.yaml", "examples/deviceclasses.yaml")
}

// startControllers starts kube-controller-manager behind a gate, and again when it ends.
func startControllers(t testing.TB) {
	r, err := newReplica(controlplane.KubeControllerManager, cluster.RESTConfig(), 0)
	require.NoError(t, err)
	path := env.Kubeconfig(t, r.gate.server.URL)
	r.launch = func(ctx context.Context) (*controlplane.Process, error) {
		return cluster.StartControllerManager(ctx, path)
	}
	cluster.controllers = r
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, r.keep(ctx))
	t.Cleanup(func() {
		cancel()
		r.end()
	})
}
