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

// A scheduler is a process behind its own gate.
type scheduler struct {
	*controlplane.Process
	gate *gate
}

// start starts a scheduler and waits until it is ready. By default it is celset-scheduler with the configuration in manifests.
// Its gate may be armed before. It is killed at the end of the test.
func start(t *testing.T, g *gate, options controlplane.SchedulerOptions) *scheduler {
	t.Helper()
	s, err := launch(t, g, options)
	require.NoError(t, err)
	return s
}

// launch is like start, for other goroutines than the test's.
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

// enabled and disabled return the options of a scheduler as in manifests, with and without the feature.
func enabled() controlplane.SchedulerOptions {
	return controlplane.SchedulerOptions{FeatureGates: map[string]bool{v1alpha1.FeatureGate: true}}
}

func disabled() controlplane.SchedulerOptions { return controlplane.SchedulerOptions{} }

// withProfiles returns the options of the stock scheduler with profiles of these names, without our plugin.
func withProfiles(names ...string) controlplane.SchedulerOptions {
	config := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
	for _, name := range names {
		config += "- schedulerName: " + name + "\n"
	}
	return env.Emulated(controlplane.SchedulerOptions{Binary: cluster.Binary(controlplane.KubeScheduler), Config: []byte(config)})
}

// kill ends the process like a crash, and returns when the API server has seen all of its requests.
func (s *scheduler) kill() {
	s.Kill()
	s.gate.close()
}

// stop ends the process gracefully, as in an upgrade.
func (s *scheduler) stop() {
	s.Stop()
	s.gate.close()
}

// requireAlive fails the test if the process has ended by itself.
func (s *scheduler) requireAlive(t *testing.T) {
	t.Helper()
	require.False(t, isClosed(s.Done()), "%v", s.Err())
}

// openGate returns a gate for a process with the rights of the service account.
func (w *workload) openGate(t *testing.T) *gate {
	t.Helper()
	return w.openReplica(t, controlplane.CelsetScheduler, 0).gate
}

// openReplica returns a gate and faults for a program with the rights of the service account. The caller starts the program.
func (w *workload) openReplica(t *testing.T, name string, seed uint64) *replica {
	t.Helper()
	config, err := cluster.RESTConfigFor(env.Scheduler.Name)
	require.NoError(t, err)
	r, err := newReplica(name, config, seed)
	require.NoError(t, err)
	w.gates = append(w.gates, r.gate)
	return r
}

// cluster is shared by all tests. They run one after the other, because each starts schedulers that are responsible for all pods.
var cluster struct {
	*env.Env
	// history records the operations of all programs on claims.
	history *history.History
	// controllers is kube-controller-manager, which also uses a gate.
	controllers *replica
}

func client() kubernetes.Interface { return cluster.Client() }

func TestMain(m *testing.M) { env.Main(m, env.NoLeaks, startCluster) }

// gates are the gates of all programs. One kind of pods needs a gate that is off in older versions.
var gates = minor.TurnOn(features.DRAExtendedResource)

// startCluster starts everything but schedulers. Pods never run, because a scheduler is only responsible for binding them.
func startCluster(t testing.TB) {
	cluster.Env = env.Start(t, controlplane.Options{
		SkipKwok: true,
		// startControllers starts it behind a gate.
		SkipControllerManager: true,
		FeatureGates:          gates,
		Users:                 []controlplane.User{env.Scheduler, env.Webhook},
	}, controlplane.CelsetScheduler, controlplane.KubeScheduler, guarded.Binary)
	cluster.history = history.New()
	startControllers(t)
	cluster.ApplyManifests(t, "scheduler/rbac.yaml", "examples/deviceclasses.yaml")
}

// startControllers starts kube-controller-manager behind a gate, and restarts it when it ends.
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
