// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	require.Eventually(t, func() bool { // it may answer once more
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
