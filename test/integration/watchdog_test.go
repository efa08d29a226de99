// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

const (
	hangingProfile = "celset-hanging"
	cycleTimeout   = 2 * time.Second
)

const hangingConfig = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false, resourceNamespace: %s, resourceName: hanging}
profiles:
- schedulerName: ` + hangingProfile + `
  plugins:
    multiPoint:
      enabled: [{name: DynamicResourcesCEL}, {name: Hang}]
      disabled: [{name: DynamicResources}]
`

// TestHangingSchedulerIsNoticed has a scheduler hang in code that nobody expected to. Its
// /livez fails in time, so that a kubelet would restart it.
func TestHangingSchedulerIsNoticed(t *testing.T) {
	cases.OnlyNightly(t, "a scheduler that gets no processor for two seconds hangs, too")
	t.Parallel()
	l := newLab(t, "hanging", 1)
	driver := l.Ring(t, 8).Drivers()[0]
	options := controlplane.SchedulerOptions{
		Name: "hanging", Binary: buildHangingScheduler(t), Config: fmt.Appendf(nil, hangingConfig, l.Namespace), User: env.Scheduler.Name,
		FeatureGates: minor.SchedulerGates(map[string]bool{v1alpha1.FeatureGate: true}), Args: []string{"--cycle-timeout=" + cycleTimeout.String()},
	}
	first := cluster.StartScheduler(t, options)
	_, err := first.Get(t.Context(), "/livez")
	require.NoError(t, err)

	l.CreateClaim(t, "hangs", env.Request("mla", driver, 2), env.Constrained("pair", env.Contiguous(driver, 2)))
	pod := env.Pod("hangs", hangingProfile, "hangs")
	pod.Annotations = map[string]string{"test.celset.dev/hang": "true"}
	_, err = client().CoreV1().Pods(l.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)

	start := time.Now()
	require.Eventually(t, func() bool { _, err = first.Get(t.Context(), "/livez"); return err != nil }, env.Patience, 100*time.Millisecond)
	t.Logf("/livez failed %v after the pod was created: %v", time.Since(start), err)
	require.ErrorContains(t, err, "500")
	require.ErrorContains(t, err, "a scheduling cycle has made no progress for ")
	require.NotContains(t, err.Error(), l.Namespace, "everybody may ask")
	_, err = first.Get(t.Context(), "/readyz")
	require.NoError(t, err)
}

func buildHangingScheduler(t *testing.T) string {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	require.NoError(t, err)
	binary := filepath.Join(t.TempDir(), "hangingscheduler")
	command := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./test/integration/hangingscheduler")
	command.Dir, command.Stderr = root, os.Stderr
	require.NoError(t, command.Run())
	return binary
}
