// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package twoschedulers

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/testing/wiring"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// tolerating restricts a pod to the reserved nodes of a pool, and makes it tolerate their taint.
func tolerating(pool string) option {
	return func(pod *corev1.Pod) {
		pod.Spec.NodeSelector = map[string]string{poolLabel: pool}
		pod.Spec.Tolerations = []corev1.Toleration{{Key: poolTaint, Operator: corev1.TolerationOpExists}}
	}
}

// TestSecondScheduler runs kube-scheduler and celset-scheduler, which is installed by the overlay second-scheduler.
func TestSecondScheduler(t *testing.T) {
	c := start(t)
	c.stock(t)
	ours := c.install(t, "second-scheduler", controlplane.SchedulerOptions{})
	for _, lease := range []string{"kube-scheduler", "celset-scheduler"} {
		env.Until(t, "lease "+lease, func(ctx context.Context) (bool, error) { return c.holder(ctx, lease) != "", nil })
	}
	require.NotEqual(t, c.holder(t.Context(), "kube-scheduler"), c.holder(t.Context(), "celset-scheduler"))

	t.Run("the stock scheduler fails closed", func(t *testing.T) { c.failClosed(t) })
	t.Run("pools split by class", func(t *testing.T) { c.splitByClass(t) })
	t.Run("pools split by taint", func(t *testing.T) { c.splitByTaint(t) })
	t.Run("nobody else notices a device in two claims", func(t *testing.T) { c.allocateTwice(t) })
	t.Run("rights", func(t *testing.T) { env.RequireNothingForbidden(t, ours) })
	t.Run("a policy keeps classes apart", func(t *testing.T) { c.keepApart(t) })
	c.requireLeasesSaid(t)
}

// requireLeasesSaid checks that docs/install.md names the Leases that remain after an uninstallation.
func (c *cluster) requireLeasesSaid(t *testing.T) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/install.md")
	require.NoError(t, err)
	leases, err := c.Client().CoordinationV1().Leases("kube-system").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, lease := range leases.Items {
		if lease.Name != "kube-scheduler" && !strings.HasPrefix(lease.Name, "apiserver-") {
			require.Contains(t, string(page), "`kube-system/"+lease.Name+"`")
		}
	}
}

// failClosed checks that kube-scheduler never allocates a claim with a constraint, although enough devices are free and
// celset-scheduler can allocate a similar claim.
func (c *cluster) failClosed(t *testing.T) {
	const driver = "closed.example.com"
	ring := c.ring(t, driver, c.nodes(t, 1, "closed")...)
	c.runWith(t, "closed-stock", env.StockProfile, []env.Part{env.Request("two", driver, 2), env.Constrained("neighbours", env.Contiguous(driver, 2))})
	c.RequireRefused(t, "closed-stock", "cannot allocate all claims")
	c.run(t, "closed-ours", env.CelsetProfile, driver)
	devices := c.requireServed(t, "closed-ours")["closed-ours"]
	require.True(t, wiring.Contiguous(ring, devices.names), "%v", devices)
	c.RequireRefused(t, "closed-stock", "cannot allocate all claims")
}

// splitByClass shows a way to divide devices: each scheduler serves one class, on the same nodes. All pods must be served.
func (c *cluster) splitByClass(t *testing.T) {
	const plain, linked = "plain.example.com", "linked.example.com"
	nodes := c.nodes(t, 2, "class")
	c.ring(t, plain, nodes...)
	ring := c.ring(t, linked, nodes...)
	var pods []string
	for i := range len(nodes) * perNode / 2 {
		stock, ours := fmt.Sprintf("class-stock-%d", i), fmt.Sprintf("class-ours-%d", i)
		c.run(t, stock, env.StockProfile, plain)
		c.run(t, ours, env.CelsetProfile, linked)
		pods = append(pods, stock, ours)
	}
	for pod, devices := range c.requireServed(t, pods...) {
		require.Len(t, devices.names, 2)
		if strings.HasPrefix(pod, "class-ours") {
			require.True(t, wiring.Contiguous(ring, devices.names), "%s got %v", pod, devices)
		}
	}
}

// splitByTaint shows another way to divide devices: each scheduler serves its own nodes, with the same class. All pods must be
// served.
func (c *cluster) splitByTaint(t *testing.T) {
	const driver = "shared.example.com"
	free := c.nodes(t, 2, "free")
	apart := c.nodes(t, 2, "apart", corev1.Taint{Key: poolTaint, Effect: corev1.TaintEffectNoSchedule})
	ring := c.ring(t, driver, append(free, apart...)...)
	var pods []string
	for i := range len(free) * perNode / 2 {
		stock, ours := fmt.Sprintf("taint-stock-%d", i), fmt.Sprintf("taint-ours-%d", i)
		c.run(t, stock, env.StockProfile, driver)
		c.run(t, ours, env.CelsetProfile, driver, tolerating("apart"))
		pods = append(pods, stock, ours)
	}
	for pod, devices := range c.requireServed(t, pods...) {
		if strings.HasPrefix(pod, "taint-stock") {
			require.Contains(t, free, devices.node, pod)
			continue
		}
		require.Contains(t, apart, devices.node, pod)
		require.True(t, wiring.Contiguous(ring, devices.names), "%s got %v", pod, devices)
	}
}

// allocateTwice shows why devices must be divided: the API server stores an allocation of a device that another claim already
// has.
func (c *cluster) allocateTwice(t *testing.T) {
	first, second := c.Claim(t, "closed-ours"), c.CreateClaim(t, "twice", env.Request("two", "closed.example.com", 2))
	second.Status.Allocation = first.Status.Allocation
	_, err := c.claims().UpdateStatus(t.Context(), second, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, c.claims().Delete(t.Context(), "twice", metav1.DeleteOptions{}))
}

// TestDefaultScheduler replaces kube-scheduler by celset-scheduler from the overlay default-scheduler, and goes back. At any
// time, one of them must schedule the pods of the profile default-scheduler.
func TestDefaultScheduler(t *testing.T) {
	const driver = "ring.example.com"
	c := start(t)
	c.ring(t, driver, c.nodes(t, 1, "node")...)
	former := c.stock(t)
	env.Until(t, "kube-scheduler leads", func(ctx context.Context) (bool, error) { return c.holder(ctx, "kube-scheduler") != "", nil })
	before := c.holder(t.Context(), "kube-scheduler")

	ours := c.install(t, "default-scheduler", controlplane.SchedulerOptions{})
	c.run(t, "constrained", env.CelsetProfile, driver)
	c.run(t, "before", env.StockProfile, driver)
	c.requireServed(t, "before")
	require.Equal(t, before, c.holder(t.Context(), "kube-scheduler"), "ours waits, although it is ready")
	require.Empty(t, c.Pod(t, "constrained").Spec.NodeName)

	former.Stop()
	c.run(t, "after", env.StockProfile, driver)
	c.requireServed(t, "before", "constrained", "after")
	require.NotEqual(t, before, c.holder(t.Context(), "kube-scheduler"))
	env.RequireNothingForbidden(t, ours)

	ours.Stop()
	c.stock(t)
	c.run(t, "again", env.StockProfile, driver)
	c.requireServed(t, "before", "constrained", "after", "again")
	c.requireLeasesSaid(t)
}
