// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/features"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/guarded"
	"github.com/celset/celset/test/internal/history"
	"github.com/celset/celset/test/internal/minor"
)

// scheduler is a process behind a gate of its own.
type scheduler struct {
	*controlplane.Process
	gate *gate
}

// start starts a scheduler and waits until it is ready, celset-scheduler with the
// configuration in manifests unless the options say otherwise. Its gate may be armed
// before. It is killed when the test ends, if it still runs.
func start(t *testing.T, g *gate, options controlplane.SchedulerOptions) *scheduler {
	t.Helper()
	s, err := launch(t, g, options)
	require.NoError(t, err)
	return s
}

// launch is start for other goroutines than that of the test.
func launch(t testing.TB, g *gate, options controlplane.SchedulerOptions) (*scheduler, error) {
	if options.Binary == "" {
		options.Binary = cluster.Binary(controlplane.CelsetScheduler)
	}
	if options.Config == nil {
		options.ConfigFile = env.Manifest(t, "scheduler", "config.yaml")
	}
	all := maps.Clone(gates)
	maps.Copy(all, options.FeatureGates)
	options.FeatureGates = all
	options.Kubeconfig = env.Kubeconfig(t, g.server.URL)
	process, err := cluster.ControlPlane.StartScheduler(t.Context(), options)
	if err != nil {
		g.close()
		return nil, err
	}
	t.Cleanup(func() {
		if !isClosed(g.closed) {
			process.Kill()
			g.close()
		}
	})
	return &scheduler{Process: process, gate: g}, nil
}

// enabled and disabled are the options of a scheduler as manifests have it, with the
// feature and without.
func enabled() controlplane.SchedulerOptions {
	return controlplane.SchedulerOptions{FeatureGates: map[string]bool{v1alpha1.FeatureGate: true}}
}

func disabled() controlplane.SchedulerOptions { return controlplane.SchedulerOptions{} }

// withProfiles is the stock scheduler with profiles of these names. None of them has
// our plugin.
func withProfiles(names ...string) controlplane.SchedulerOptions {
	config := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
	for _, name := range names {
		config += "- schedulerName: " + name + "\n"
	}
	return env.Emulated(controlplane.SchedulerOptions{Binary: cluster.Binary(controlplane.KubeScheduler), Config: []byte(config)})
}

// kill ends the process as a crash would, wherever it is, and returns when the API
// server has seen all that it will ever see of it.
func (s *scheduler) kill() {
	s.Kill()
	s.gate.close()
}

// stop asks the process to end, as an upgrade would.
func (s *scheduler) stop() {
	s.Stop()
	s.gate.close()
}

// requireAlive fails the test if the process has ended by itself.
func (s *scheduler) requireAlive(t *testing.T) {
	t.Helper()
	require.False(t, isClosed(s.Done()), "%v", s.Err())
}

// openGate makes a gate for a process that acts as the service account.
func (w *workload) openGate(t *testing.T) *gate {
	t.Helper()
	return w.openReplica(t, controlplane.CelsetScheduler, 0).gate
}

// openReplica makes a gate and faults for a program that acts as the service account and is
// started by the caller.
func (w *workload) openReplica(t *testing.T, name string, seed uint64) *replica {
	t.Helper()
	config, err := cluster.RESTConfigFor(env.Scheduler.Name)
	require.NoError(t, err)
	r, err := newReplica(name, config, seed)
	require.NoError(t, err)
	w.gates = append(w.gates, r.gate)
	return r
}

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
