// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/testing/transcript"
)

// TestSchedulers uses the unchanged kube-scheduler, because it tests this package, not celset-scheduler.
func TestSchedulers(t *testing.T) {
	t.Parallel()
	const user = "system:kube-scheduler"
	cp := start(t, Options{
		DataDir: t.TempDir(), SkipControllerManager: true, SkipKwok: true,
		Users: []User{{Name: user}},
	})
	_, err := Build(t.Context(), "", t.Output(), KubeScheduler)
	require.NoError(t, err)
	stock := cp.Binary(KubeScheduler)
	_, err = CreateNodes(t.Context(), cp.Client(), 1, NodeOptions{Static: true})
	require.NoError(t, err)

	first, err := cp.StartScheduler(t.Context(), SchedulerOptions{
		Binary: stock, User: user, FeatureGates: map[string]bool{"AllAlpha": false}, Args: []string{"--v=2"},
	})
	require.NoError(t, err)
	second, err := cp.StartScheduler(t.Context(), SchedulerOptions{
		Binary: stock, User: user, Name: "second",
		Config: []byte(defaultSchedulerConfig + "profiles: [{schedulerName: second}]\n"),
	})
	require.NoError(t, err)

	t.Run("each schedules the pods that name it", func(t *testing.T) {
		requireScheduled(t, cp, "for-first", "default-scheduler")
		requireScheduled(t, cp, "for-second", "second")
	})

	t.Run("names are taken while they run", func(t *testing.T) {
		_, err := cp.StartScheduler(t.Context(), SchedulerOptions{Binary: stock, Name: "second"})
		require.ErrorContains(t, err, "start second: one of that name runs already")
		require.Contains(t, cp.Processes(), second)
	})

	t.Run("a restart has a log of its own", func(t *testing.T) {
		first.Stop()
		require.NoError(t, first.Err())
		again, err := cp.StartScheduler(t.Context(), SchedulerOptions{Binary: stock})
		require.NoError(t, err)
		require.Equal(t, first.Name(), again.Name())
		require.Equal(t, filepath.Join(cp.LogDir(), "kube-scheduler.log"), first.LogFile())
		require.Equal(t, filepath.Join(cp.LogDir(), "kube-scheduler-2.log"), again.LogFile())
		requireScheduled(t, cp, "for-restarted", "default-scheduler")
	})

	t.Run("errors", func(t *testing.T) {
		for name, test := range map[string]struct {
			options SchedulerOptions
			want    []string
		}{
			"configuration it rejects": {
				options: SchedulerOptions{Name: "bad", Config: []byte(defaultSchedulerConfig + "profiles: [{schedulerName: x, plugins: {filter: {enabled: [{name: NoSuch}]}}}]\n")},
				want:    []string{"bad ended by itself: exit status 1", "NoSuch", filepath.Join(cp.LogDir(), "bad.log")},
			},
			"unknown feature gate": {
				options: SchedulerOptions{Name: "gate", FeatureGates: map[string]bool{"NoSuchGate": true}},
				want:    []string{"gate ended by itself", "unrecognized feature gate: NoSuchGate"},
			},
			"unknown user": {
				options: SchedulerOptions{User: "bob"},
				want:    []string{"scheduler kube-scheduler: user \"bob\" is unknown"},
			},
			"two kubeconfigs": {
				options: SchedulerOptions{User: user, Kubeconfig: cp.Kubeconfig()},
				want:    []string{"scheduler kube-scheduler: both User and Kubeconfig are given"},
			},
			"two configurations": {
				options: SchedulerOptions{ConfigFile: "config.yaml", Config: []byte("kind: Pod")},
				want:    []string{"both ConfigFile and Config"},
			},
			"no such file": {
				options: SchedulerOptions{ConfigFile: "no-such.yaml"},
				want:    []string{"scheduler kube-scheduler: open no-such.yaml"},
			},
			"not a scheduler configuration": {
				options: SchedulerOptions{Config: []byte("kind: Pod")},
				want:    []string{"scheduler kube-scheduler: Config: scheduler configuration: kind is Pod"},
			},
		} {
			t.Run(name, func(t *testing.T) {
				test.options.Binary = stock
				_, err := cp.StartScheduler(t.Context(), test.options)
				for _, want := range test.want {
					require.ErrorContains(t, err, want)
				}
			})
		}
		require.Empty(t, cp.supervisor.failed, "a failed start is not a failure of the control plane")
	})
}

// requireScheduled creates a pod and waits until it is bound to a node.
func requireScheduled(t *testing.T, cp *ControlPlane, name, scheduler string) {
	t.Helper()
	pods := cp.Client().CoreV1().Pods("default")
	pod := boundPod(name, "")
	pod.Spec.SchedulerName = scheduler
	_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		pod, err = pods.Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && pod.Spec.NodeName == "node-0" && pod.Status.Phase == corev1.PodPending
	}, patience, 100*time.Millisecond, "%s does not schedule %s", scheduler, name)
}

// TestLocalSchedulerConfig compares results of localSchedulerConfig with the expected results in a file.
func TestLocalSchedulerConfig(t *testing.T) {
	transcript.Run(t, filepath.Join("testdata", "schedulerconfig.txt"), func(_ *testing.T, input string) string {
		got, err := localSchedulerConfig([]byte(input), "/k", false)
		if err != nil {
			return "error: " + err.Error()
		}
		return string(got)
	})
}

func TestRestartKeepsWhatIsStored(t *testing.T) {
	t.Parallel()
	cp := start(t, Options{DataDir: t.TempDir(), SkipControllerManager: true, SkipKwok: true})
	ctx, namespaces := t.Context(), cp.Client().CoreV1().Namespaces()
	for name, restart := range map[string]func(context.Context, func()) error{Etcd: cp.RestartEtcd, KubeAPIServer: cp.RestartAPIServer} {
		_, err := namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "before-" + name}}, metav1.CreateOptions{})
		require.NoError(t, err)
		before := cp.Running(name).PID()
		err = restart(ctx, func() {
			require.Nil(t, cp.Running(name))
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := namespaces.Create(short, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "without-" + name}}, metav1.CreateOptions{})
			require.Error(t, err)
		})
		require.NoError(t, err)
		require.NotEqual(t, before, cp.Running(name).PID())
		require.Eventually(t, func() bool {
			_, err := namespaces.Get(ctx, "before-"+name, metav1.GetOptions{})
			return err == nil
		}, patience, 100*time.Millisecond)
	}
	cp.Stop()
	require.ErrorContains(t, cp.RestartEtcd(ctx, nil), "restart etcd: it does not run")
	select {
	case err := <-cp.supervisor.failed:
		t.Fatalf("who is restarted has not failed: %v", err)
	default:
	}
}

func TestPausedProcess(t *testing.T) {
	t.Parallel()
	cp := start(t, Options{DataDir: t.TempDir(), SkipControllerManager: true, SkipKwok: true})
	server := cp.Running(KubeAPIServer)
	require.NoError(t, server.Pause())
	require.Eventually(t, func() bool { // the stopped process may still answer a request
		short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := server.Get(short, "/readyz")
		return errors.Is(err, context.DeadlineExceeded)
	}, patience, time.Millisecond)
	require.NoError(t, server.Continue())
	_, err := server.Get(t.Context(), "/livez")
	require.NoError(t, err)

	require.NoError(t, server.Pause())
	server.Stop()
	require.NoError(t, server.Err())
	require.ErrorContains(t, server.Pause(), "has ended")
	require.ErrorContains(t, server.Continue(), "has ended")
}
