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
	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/minor"
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
	driver := l.ring(t, 8).Drivers()[0]
	options := controlplane.SchedulerOptions{
		Name: "hanging", Binary: buildHangingScheduler(t), Config: fmt.Appendf(nil, hangingConfig, l.namespace), User: serviceAccount,
		FeatureGates: minor.SchedulerGates(map[string]bool{v1alpha1.FeatureGate: true}), Args: []string{"--cycle-timeout=" + cycleTimeout.String()},
	}
	first, err := cluster.StartScheduler(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(first.Kill)
	_, err = first.Get(t.Context(), "/livez")
	require.NoError(t, err)

	_, err = client().ResourceV1().ResourceClaims(l.namespace).Create(t.Context(),
		claimOf("hangs", request("mla", driver, 2), constrained("pair", contiguous(driver, 2))), metav1.CreateOptions{})
	require.NoError(t, err)
	pod := podOf("hangs", hangingProfile, "hangs")
	pod.Annotations = map[string]string{"test.celset.dev/hang": "true"}
	_, err = client().CoreV1().Pods(l.namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)

	start := time.Now()
	require.Eventually(t, func() bool { _, err = first.Get(t.Context(), "/livez"); return err != nil }, patience, pollPeriod)
	t.Logf("/livez failed %v after the pod was created: %v", time.Since(start), err)
	require.ErrorContains(t, err, "500")
	require.ErrorContains(t, err, "a scheduling cycle has made no progress for ")
	require.NotContains(t, err.Error(), l.namespace, "everybody may ask")
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
