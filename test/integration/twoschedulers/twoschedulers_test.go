// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package twoschedulers

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/topology"
)

const (
	// perNode is the number of devices of a driver on a node.
	perNode = 8
	// poolLabel and poolTaint set nodes apart.
	poolLabel, poolTaint = "example.com/pool", "example.com/connected"
)

// ring publishes a ring of devices on each node, with a class named like the driver.
func (c *cluster) ring(t *testing.T, driver string, nodes ...string) topology.Topology {
	t.Helper()
	ring, err := topology.NewRing(topology.Family{Driver: driver, Prefix: "d"}, perNode)
	require.NoError(t, err)
	for _, node := range nodes {
		slices, err := ring.ResourceSlices(node)
		require.NoError(t, err)
		for _, slice := range slices {
			_, err := c.Client().ResourceV1().ResourceSlices().Create(t.Context(), slice, metav1.CreateOptions{})
			require.NoError(t, err)
		}
	}
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: driver}}
	class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: "device.driver == '" + driver + "'"}}}
	_, err = c.Client().ResourceV1().DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{})
	require.NoError(t, err)
	return ring
}

// nodes creates nodes.
func (c *cluster) nodes(t *testing.T, n int, prefix string, taints ...corev1.Taint) []string {
	t.Helper()
	names, err := controlplane.CreateNodes(t.Context(), c.Client(), n, controlplane.NodeOptions{
		Prefix: prefix, Labels: map[string]string{poolLabel: prefix}, Taints: taints, Static: true,
	})
	require.NoError(t, err)
	return names
}

// neighbours asks for two devices with consecutive indices.
func neighbours(driver string) func(*corev1.Pod, *resourceapi.ResourceClaim) {
	expression := fmt.Sprintf("devices.map(d, d.attributes[%[1]q].index).max() - devices.map(d, d.attributes[%[1]q].index).min() == 1", driver)
	return func(_ *corev1.Pod, claim *resourceapi.ResourceClaim) {
		reference := resourceapi.FullyQualifiedName("celset.dev/neighbours")
		claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: &reference}}
		claim.Spec.Devices.Config = []resourceapi.DeviceClaimConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{
			Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: "celset.dev", Parameters: runtime.RawExtension{Raw: fmt.Appendf(nil,
				`{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": "neighbours", "expression": %q}`, expression)}},
		}}}
	}
}

// tolerating lets a pod onto the nodes that are set apart, and onto no others.
func tolerating(pool string) func(*corev1.Pod, *resourceapi.ResourceClaim) {
	return func(pod *corev1.Pod, _ *resourceapi.ResourceClaim) {
		pod.Spec.NodeSelector = map[string]string{poolLabel: pool}
		pod.Spec.Tolerations = []corev1.Toleration{{Key: poolTaint, Operator: corev1.TolerationOpExists}}
	}
}

// TestSecondScheduler runs kube-scheduler and, beside it, what the overlay
// second-scheduler renders.
func TestSecondScheduler(t *testing.T) {
	c := start(t)
	c.startStock(t)
	ours := c.install(t, "second-scheduler")
	for _, lease := range []string{"kube-scheduler", "celset-scheduler"} {
		eventually(t, "lease "+lease, func(ctx context.Context) (bool, error) { return c.holder(ctx, lease) != "", nil })
	}
	require.NotEqual(t, c.holder(t.Context(), "kube-scheduler"), c.holder(t.Context(), "celset-scheduler"))

	t.Run("the stock scheduler fails closed", func(t *testing.T) { c.failClosed(t) })
	t.Run("pools split by class", func(t *testing.T) { c.splitByClass(t) })
	t.Run("pools split by taint", func(t *testing.T) { c.splitByTaint(t) })
	t.Run("nobody else notices a device in two claims", func(t *testing.T) { c.allocateTwice(t) })
	t.Run("rights", func(t *testing.T) { requireNothingForbidden(t, ours) })
	t.Run("a policy keeps classes apart", func(t *testing.T) { c.keepApart(t) })
}

// failClosed has the stock scheduler refuse a claim that ours serves with the same,
// free, devices.
func (c *cluster) failClosed(t *testing.T) {
	const driver = "closed.example.com"
	ring := c.ring(t, driver, c.nodes(t, 1, "closed")...)
	c.run(t, "closed-stock", stockProfile, driver, neighbours(driver))
	c.requireRefused(t, "closed-stock", "cannot allocate all claims")
	c.run(t, "closed-ours", celsetProfile, driver, neighbours(driver))
	devices := c.requireServed(t, "closed-ours")["closed-ours"]
	require.True(t, ring.Contiguous(devices.names()), devices)
	c.requireRefused(t, "closed-stock", "cannot allocate all claims")
}

// splitByClass has pods of both schedulers on the same nodes use up all devices, each
// those of one class.
func (c *cluster) splitByClass(t *testing.T) {
	const plain, linked = "plain.example.com", "linked.example.com"
	nodes := c.nodes(t, 2, "class")
	c.ring(t, plain, nodes...)
	ring := c.ring(t, linked, nodes...)
	var pods []string
	for i := range len(nodes) * perNode / 2 {
		stock, ours := fmt.Sprintf("class-stock-%d", i), fmt.Sprintf("class-ours-%d", i)
		c.run(t, stock, stockProfile, plain)
		c.run(t, ours, celsetProfile, linked, neighbours(linked))
		pods = append(pods, stock, ours)
	}
	for pod, devices := range c.requireServed(t, pods...) {
		require.Len(t, devices, 2)
		if strings.HasPrefix(pod, "class-ours") {
			require.True(t, ring.Contiguous(devices.names()), "%s got %v", pod, devices)
		}
	}
}

// splitByTaint has pods of both schedulers use up all devices of one class, each those
// on other nodes.
func (c *cluster) splitByTaint(t *testing.T) {
	const driver = "shared.example.com"
	free := c.nodes(t, 2, "free")
	apart := c.nodes(t, 2, "apart", corev1.Taint{Key: poolTaint, Effect: corev1.TaintEffectNoSchedule})
	ring := c.ring(t, driver, append(free, apart...)...)
	var pods []string
	for i := range len(free) * perNode / 2 {
		stock, ours := fmt.Sprintf("taint-stock-%d", i), fmt.Sprintf("taint-ours-%d", i)
		c.run(t, stock, stockProfile, driver)
		c.run(t, ours, celsetProfile, driver, neighbours(driver), tolerating("apart"))
		pods = append(pods, stock, ours)
	}
	for pod, devices := range c.requireServed(t, pods...) {
		if strings.HasPrefix(pod, "taint-stock") {
			require.Contains(t, free, devices.node(), pod)
			continue
		}
		require.Contains(t, apart, devices.node(), pod)
		require.True(t, ring.Contiguous(devices.names()), "%s got %v", pod, devices)
	}
}

// allocateTwice shows why the pools have to be split: of two schedulers that each think
// a device free, the API server stops neither.
func (c *cluster) allocateTwice(t *testing.T) {
	claims := c.Client().ResourceV1().ResourceClaims(namespace)
	first, err := claims.Get(t.Context(), "closed-ours", metav1.GetOptions{})
	require.NoError(t, err)
	second := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "twice"}, Spec: first.Spec}
	second, err = claims.Create(t.Context(), second, metav1.CreateOptions{})
	require.NoError(t, err)
	second.Status.Allocation = first.Status.Allocation
	_, err = claims.UpdateStatus(t.Context(), second, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, claims.Delete(t.Context(), "twice", metav1.DeleteOptions{}))
}

// TestDefaultScheduler replaces kube-scheduler by what the overlay default-scheduler
// renders, and goes back. At any time one of them schedules pods of default-scheduler.
func TestDefaultScheduler(t *testing.T) {
	const driver = "ring.example.com"
	c := start(t)
	c.ring(t, driver, c.nodes(t, 1, "node")...)
	former := c.startStock(t)
	eventually(t, "kube-scheduler leads", func(ctx context.Context) (bool, error) { return c.holder(ctx, "kube-scheduler") != "", nil })
	before := c.holder(t.Context(), "kube-scheduler")

	ours := c.install(t, "default-scheduler")
	c.run(t, "constrained", celsetProfile, driver, neighbours(driver))
	c.run(t, "before", stockProfile, driver)
	c.requireServed(t, "before")
	require.Equal(t, before, c.holder(t.Context(), "kube-scheduler"), "ours waits, although it is ready")
	require.Empty(t, c.pod(t.Context(), t, "constrained").Spec.NodeName)

	former.Stop()
	c.run(t, "after", stockProfile, driver)
	c.requireServed(t, "before", "constrained", "after")
	require.NotEqual(t, before, c.holder(t.Context(), "kube-scheduler"))
	requireNothingForbidden(t, ours)

	ours.Stop()
	c.startStock(t)
	c.run(t, "again", stockProfile, driver)
	c.requireServed(t, "before", "constrained", "after", "again")
}
