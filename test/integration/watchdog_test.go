// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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

// grant gives the account of schedulers rights in the lab's namespace.
func (l *lab) grant(t *testing.T, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "scheduler"}, Rules: rules}
	_, err := client().RbacV1().Roles(l.namespace).Create(t.Context(), role, metav1.CreateOptions{})
	require.NoError(t, err)
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: serviceAccount}},
	}
	_, err = client().RbacV1().RoleBindings(l.namespace).Create(t.Context(), binding, metav1.CreateOptions{})
	require.NoError(t, err)
}

// TestHangingSchedulerIsNoticed has a scheduler hang in code that nobody expected to. Its
// /livez fails in time, so that a kubelet would restart it, and the next one tries other pods
// before the one that it hung for, and says so.
func TestHangingSchedulerIsNoticed(t *testing.T) {
	cases.OnlyNightly(t, "a scheduler that gets no processor for two seconds hangs, too")
	t.Parallel()
	l := newLab(t, "hanging", 1)
	driver := l.ring(t, 8).Drivers()[0]
	options := controlplane.SchedulerOptions{
		Name: "hanging", Binary: buildHangingScheduler(t), Config: fmt.Appendf(nil, hangingConfig, l.namespace), User: serviceAccount,
		FeatureGates: minor.SchedulerGates(map[string]bool{v1alpha1.FeatureGate: true}), Args: []string{"--cycle-timeout=" + cycleTimeout.String()},
	}
	l.grant(t, rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create", "get", "update"}})
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
	pod, err = client().CoreV1().Pods(l.namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)

	start := time.Now()
	require.Eventually(t, func() bool { _, err = first.Get(t.Context(), "/livez"); return err != nil }, patience, pollPeriod)
	t.Logf("/livez failed %v after the pod was created: %v", time.Since(start), err)
	require.ErrorContains(t, err, "500")
	require.ErrorContains(t, err, "a scheduling cycle has made no progress for ")
	require.NotContains(t, err.Error(), l.namespace, "everybody may ask")
	_, err = first.Get(t.Context(), "/readyz")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		lease, err := client().CoordinationV1().Leases(l.namespace).Get(t.Context(), "hanging-attempts", metav1.GetOptions{})
		return err == nil && containsAll(lease.Annotations["celset.dev/attempts"], []string{string(pod.UID)})
	}, patience, pollPeriod)
	first.Kill()
	<-first.Done()

	l.run(t, "other", hangingProfile, request("mla", driver, 2), constrained("pair", contiguous(driver, 2)))
	options.Name = "restarted"
	second, err := cluster.StartScheduler(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(second.Kill)
	l.requireRunning(t, "other")
	l.awaitEvent(t, pod, "SchedulingInterrupted", "the scheduler ended while it tried pod "+l.namespace+"/hangs, which it did since ")
	l.eventuallyPod(t, "hangs", "put off", func(_ context.Context, pod *corev1.Pod) (bool, error) {
		return isRefused(pod, "taking too much of the scheduler's time, 1 times in a row: tried again at ", "the last time: the scheduler ended"), nil
	})
	_, err = second.Get(t.Context(), "/livez")
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
