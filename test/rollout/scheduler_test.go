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

// A scheduler is a scheduler process that connects to the API server through its own gate.
type scheduler struct {
	*controlplane.Process
	gate *gate
}

// start starts a scheduler and waits until it is ready. Without options it is celset-scheduler with the configuration in
// manifests. The gate may already be armed. The scheduler is killed at the end of the test.
func start(t *testing.T, g *gate, options controlplane.SchedulerOptions) *scheduler {
	t.Helper()
	s, err := launch(t, g, options)
	require.NoError(t, err)
	return s
}

// launch is like start. It may be called in any goroutine, because it returns an error instead of failing the test.
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

// enabled returns the options of a scheduler as in manifests. disabled returns the same options with the feature gate off.
func enabled() controlplane.SchedulerOptions {
	return controlplane.SchedulerOptions{FeatureGates: map[string]bool{v1alpha1.FeatureGate: true}}
}

func disabled() controlplane.SchedulerOptions { return controlplane.SchedulerOptions{} }

// withProfiles returns options for kube-scheduler with profiles of these names, which don't have our plugin.
func withProfiles(names ...string) controlplane.SchedulerOptions {
	config := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
	for _, name := range names {
		config += "- schedulerName: " + name + "\n"
	}
	return env.Emulated(controlplane.SchedulerOptions{Binary: cluster.Binary(controlplane.KubeScheduler), Config: []byte(config)})
}

// kill kills the process, and waits until the API server has processed all its requests.
func (s *scheduler) kill() {
	s.Kill()
	s.gate.close()
}

// stop ends the process by SIGTERM, as an upgrade does.
func (s *scheduler) stop() {
	s.Stop()
	s.gate.close()
}

// requireAlive requires that the process has not ended by itself.
func (s *scheduler) requireAlive(t *testing.T) {
	t.Helper()
	require.False(t, isClosed(s.Done()), "%v", s.Err())
}

// openGate returns a gate that uses the rights of celset-scheduler's service account.
func (w *workload) openGate(t *testing.T) *gate {
	t.Helper()
	return w.openReplica(t, controlplane.CelsetScheduler, 0).gate
}

// openReplica returns a replica with a gate and faults, with the rights of celset-scheduler's service account. The caller must
// start the program.
func (w *workload) openReplica(t *testing.T, name string, seed uint64) *replica {
	t.Helper()
	config, err := cluster.RESTConfigFor(env.Scheduler.Name)
	require.NoError(t, err)
	r, err := newReplica(name, config, seed)
	require.NoError(t, err)
	w.gates = append(w.gates, r.gate)
	return r
}

// cluster is the control plane that all tests share. The tests run one after the other, because each starts schedulers for all
// pods.
var cluster struct {
	*env.Env
	// history records the operations on claims of all programs.
	history *history.History
	// controllers is kube-controller-manager. It also connects through a gate.
	controllers *replica
}

func client() kubernetes.Interface { return cluster.Client() }

func TestMain(m *testing.M) { env.Main(m, env.NoLeaks, startCluster) }

// gates are the feature gates of all programs. They turn on a feature that a kind of pods needs and that older versions have
// off.
var gates = minor.TurnOn(features.DRAExtendedResource)

// startCluster starts a control plane without schedulers. There are no kubelets, so pods never run; a scheduler only has to
// bind them.
func startCluster(t testing.TB) {
	cluster.Env = env.Start(t, controlplane.Options{
		SkipKwok: true,
		// startControllers starts the controller manager, so that it uses a gate.
		SkipControllerManager: true,
		FeatureGates:          gates,
		Users:                 []controlplane.User{env.Scheduler, env.Webhook},
	}, controlplane.CelsetScheduler, controlplane.KubeScheduler, guarded.Binary)
	cluster.history = history.New()
	startControllers(t)
	cluster.ApplyManifests(t, "scheduler/rbac.yaml", "examples/deviceclasses.yaml")
}

// startControllers starts kube-controller-manager with a gate, and restarts it whenever it ends.
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
