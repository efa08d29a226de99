// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package twoschedulers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/guarded"
)

// compete runs both schedulers on one pool that has exactly enough devices for all pods. Each allocating write is delayed, so
// that the other scheduler sees it late.
func (c *cluster) compete(t *testing.T, driver string) (pods []string) {
	t.Helper()
	_, kubeconfig := c.newGate(t, env.KubeScheduler.Name, slow)
	c.StartStock(t, controlplane.SchedulerOptions{Kubeconfig: kubeconfig})
	_, kubeconfig = c.newGate(t, env.Scheduler.Name, slow)
	c.install(t, "second-scheduler", controlplane.SchedulerOptions{Kubeconfig: kubeconfig})
	nodes := c.nodes(t, 4, "node")
	c.ring(t, driver, nodes...)
	for i := range len(nodes) * perNode / 2 / 2 {
		theirs, ours := fmt.Sprintf("stock-%d", i), fmt.Sprintf("ours-%d", i)
		c.run(t, theirs, env.StockProfile, driver)
		c.run(t, ours, env.CelsetProfile, driver)
		pods = append(pods, theirs, ours)
	}
	return pods
}

// TestTwoSchedulersAllocateTwice checks that, without the guard, two schedulers on one pool allocate a device twice. Otherwise
// the next test would prove nothing.
func TestTwoSchedulersAllocateTwice(t *testing.T) {
	cases.OnlyNightly(t, "two schedulers meet by chance")
	c := start(t)
	l := c.follow(t)
	pods := c.compete(t, "ring.example.com")
	env.Until(t, "a device is in two claims", func(context.Context) (bool, error) { return len(l.Entries().Violations) > 0, nil })
	require.ErrorContains(t, l.Entries().Err(), "gets device ring.example.com/", "of %v", pods)
}

// TestGuardedSchedulersShareAPool runs kube-scheduler and celset-scheduler on one pool with the guard. All pods must be served,
// and no device may be in two claims, even though the active replica of the guard is killed.
func TestGuardedSchedulersShareAPool(t *testing.T) {
	c := start(t, "--runtime-config=resource.k8s.io/v1beta2=true")
	l := c.follow(t)
	g := c.installGuard(t)
	active := g.startReplica(t)
	env.Until(t, "the first replica is active", func(ctx context.Context) (bool, error) { return active.IsActive(ctx), nil })
	other := g.startReplica(t)
	g.ask(t, other)
	misled := c.createUnallocated(t, "misled")
	misled.Status.Allocation = guarded.Allocation("misled.example.com")
	env.Until(t, "a replica that does not lead refuses", func(ctx context.Context) (bool, error) {
		_, err := c.claims().UpdateStatus(ctx, misled, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "is not the leader"), nil
	})
	g.ask(t, active)
	g.waitUntilActive(t)

	pods := c.compete(t, "ring.example.com")
	c.requireServed(t, pods...)
	require.NoError(t, l.Entries().Err())
	if cases.Nightly() {
		require.Positive(t, g.judged(t, "overlap"), "two schedulers did not meet")
	}
	require.GreaterOrEqual(t, g.judged(t, "admitted"), len(pods))

	t.Run("other versions of the API, and patches", func(t *testing.T) {
		older := c.Client().ResourceV1beta2().ResourceClaims(namespace)
		probe, err := older.Get(t.Context(), "probe", metav1.GetOptions{})
		require.NoError(t, err)
		owner, err := older.Get(t.Context(), "owner", metav1.GetOptions{})
		require.NoError(t, err)
		probe.Status.Allocation = owner.Status.Allocation
		_, err = older.UpdateStatus(t.Context(), probe, metav1.UpdateOptions{})
		require.ErrorContains(t, err, "is in use: claim default/owner")
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"allocation": guarded.Allocation("probe.example.com")}})
		require.NoError(t, err)
		_, err = c.claims().Patch(t.Context(), "probe", types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		require.ErrorContains(t, err, "is in use: claim default/owner")
	})
	t.Run("the replica that judges is killed", func(t *testing.T) {
		active.Kill()
		g.ask(t, other)
		c.allocate(t, "after", "after.example.com")
		require.Positive(t, g.judged(t, "admitted"), "by the other")
		second := c.createUnallocated(t, "second")
		second.Status.Allocation = guarded.Allocation("after.example.com")
		_, err := c.claims().UpdateStatus(t.Context(), second, metav1.UpdateOptions{})
		require.ErrorContains(t, err, "device after.example.com/pool/device is in use: claim default/after")
		require.NoError(t, l.Entries().Err())
	})
	t.Run("devices that are given back", func(t *testing.T) {
		after := c.Claim(t, "after")
		after.Status.Allocation = nil
		_, err := c.claims().UpdateStatus(t.Context(), after, metav1.UpdateOptions{})
		require.NoError(t, err)
		second := c.Claim(t, "second")
		second.Status.Allocation = guarded.Allocation("after.example.com")
		_, err = c.claims().UpdateStatus(t.Context(), second, metav1.UpdateOptions{})
		require.NoError(t, err, "at once, however late the guard hears of it")
	})
	t.Run("the last replica hands its lease over", func(t *testing.T) {
		began := time.Now()
		next := g.startReplica(t)
		g.ask(t, next)
		other.Stop()
		c.allocate(t, "later", "later.example.com")
		require.Equal(t, 1, strings.Count(logOf(t, next.Process), `"Guarding allocations"`), "after %s", time.Since(began))
		require.NotContains(t, logOf(t, next.Process), "Guarding allocations soon", "there was nothing to wait for")
	})
	for _, r := range g.replicas {
		env.RequireNothingForbidden(t, r.Process)
	}
}

func logOf(t *testing.T, p *controlplane.Process) string {
	t.Helper()
	content, err := os.ReadFile(p.LogFile())
	require.NoError(t, err)
	return string(content)
}

// TestPausedLeader pauses a scheduler after it has chosen devices. Meanwhile the other replica becomes the leader and chooses
// the same devices. Then the first scheduler continues. Without the guard both allocations are stored; with it, the late one is
// rejected.
func TestPausedLeader(t *testing.T) {
	for name, guarded := range map[string]bool{"without guard": false, "with guard": true} {
		t.Run(name, func(t *testing.T) {
			const driver = "pair.example.com"
			c := start(t)
			l := c.follow(t)
			if guarded {
				g := c.installGuard(t)
				g.ask(t, g.startReplica(t))
				g.waitUntilActive(t)
			}
			late := c.pause(t, driver)
			require.NotNil(t, c.Claim(t, "second").Status.Allocation)
			if guarded {
				require.Equal(t, http.StatusForbidden, late.code, late.body)
				require.Contains(t, late.body, "is in use: claim default/second")
				require.NoError(t, l.Entries().Err())
				return
			}
			require.Equal(t, http.StatusOK, late.code, late.body)
			env.Until(t, "a device is in two claims", func(context.Context) (bool, error) { return len(l.Entries().Violations) > 0, nil })
		})
	}
}

// TestStoppedLeader pauses a scheduler while many of its requests wait in its client's queue, and continues the scheduler after
// another leader has allocated devices. The first scheduler must not send any of the waiting requests.
func TestStoppedLeader(t *testing.T) {
	const driver, pods = "ring.example.com", 120
	c := start(t)
	l := c.follow(t)
	former := c.install(t, "second-scheduler", controlplane.SchedulerOptions{Name: "former"})
	c.ring(t, driver, c.nodes(t, pods*2/perNode, "node")...)
	var names []string
	for i := range pods {
		names = append(names, fmt.Sprintf("pod-%d", i))
		c.run(t, names[i], env.CelsetProfile, driver)
	}
	require.NoError(t, former.Pause())
	c.install(t, "second-scheduler", controlplane.SchedulerOptions{Name: "next"})
	c.requireServed(t, names...)
	require.NoError(t, former.Continue())
	env.Receive(t, "the end of the former leader", former.Done())
	require.NoError(t, l.Entries().Err())
}

// pause runs two replicas of a scheduler. The leader chooses the only devices of a node for one pod; pause stops the leader's
// write and pauses the leader. The other replica becomes the leader, and allocates the same devices to another pod. pause
// returns the API server's response to the late write.
func (c *cluster) pause(t *testing.T, driver string) answer {
	t.Helper()
	chosen, release := make(chan struct{}), make(chan struct{})
	arrived := sync.OnceFunc(func() { close(chosen) })
	gate, kubeconfig := c.newGate(t, env.Scheduler.Name, func() {
		arrived()
		<-release
	})
	goOn := sync.OnceFunc(func() { close(release) })
	// Continue the process even if the test fails. The gate's server, which closes later, waits for its requests.
	t.Cleanup(goOn)
	// On a busy machine a renewal may take seconds, so shorter durations would fail.
	args := []string{"--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=12s", "--leader-elect-retry-period=500ms"}
	former := c.install(t, "second-scheduler", controlplane.SchedulerOptions{Name: "former", Kubeconfig: kubeconfig, Args: args})
	node, two := c.nodes(t, 1, "node")[0], []env.Part{env.Request("two", driver, 2)}
	c.CreateClass(t, driver)
	c.CreateSlice(t, &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "pair"}, Spec: resourceapi.ResourceSliceSpec{
		Driver: driver, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
		Devices: []resourceapi.Device{{Name: "0"}, {Name: "1"}},
	}})
	c.runWith(t, "first", env.CelsetProfile, two)
	env.Receive(t, "the choice for the first pod", chosen)
	require.NoError(t, former.Pause())

	c.CreatePriorityClass(t, &scheduling.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: "first-served"}, Value: 1000, PreemptionPolicy: ptr.To(corev1.PreemptNever),
	})
	c.runWith(t, "second", env.CelsetProfile, two, func(pod *corev1.Pod) { pod.Spec.PriorityClassName = "first-served" })
	c.install(t, "second-scheduler", controlplane.SchedulerOptions{Name: "next", Args: args})
	c.RequireRunning(t, "second")
	goOn()
	require.NoError(t, former.Continue())
	return env.Receive(t, "the answer to the former leader", gate.answers)
}
