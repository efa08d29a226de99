// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package twoschedulers

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/guarded"
)

const (
	// guardGrace is long enough for API servers that are not overloaded. guardLease is long enough for renewals on a busy machine.
	guardGrace = 5 * time.Second
	guardLease = 12 * time.Second
)

// A guard is the rendered webhook of an overlay, with replicas on this machine.
type guard struct {
	c        *cluster
	overlay  *guarded.Overlay
	replicas []*guarded.Replica
}

// installGuard applies the overlay without the registration of the webhook.
func (c *cluster) installGuard(t *testing.T) *guard {
	t.Helper()
	overlay, err := guarded.Render(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, overlay.Install(t.Context(), c.RESTConfig()))
	return &guard{c: c, overlay: overlay}
}

// startReplica starts a replica and waits until it is ready.
func (g *guard) startReplica(t *testing.T) *guarded.Replica {
	t.Helper()
	kubeconfig, err := g.c.KubeconfigFor(env.Webhook.Name)
	require.NoError(t, err)
	r, err := g.overlay.Start(t.Context(), g.c.ControlPlane, guarded.Options{
		Name: fmt.Sprintf("guard-%d", len(g.replicas)+1), Kubeconfig: kubeconfig, Grace: guardGrace, Lease: guardLease,
	})
	require.NoError(t, err)
	g.replicas = append(g.replicas, r)
	return r
}

// ask makes the API server call a replica.
func (g *guard) ask(t *testing.T, r *guarded.Replica) {
	t.Helper()
	require.NoError(t, g.overlay.Ask(t.Context(), g.c.RESTConfig(), r.Address))
}

// waitUntilActive waits until the guard refuses an allocation of a device that another claim has. The attempts are dry runs, so
// none is stored.
func (g *guard) waitUntilActive(t *testing.T) {
	t.Helper()
	g.c.allocate(t, "owner", "probe.example.com")
	probe := g.c.createUnallocated(t, "probe")
	probe.Status.Allocation = guarded.Allocation("probe.example.com")
	env.Until(t, "the guard judges", func(ctx context.Context) (bool, error) {
		_, err := g.c.claims().UpdateStatus(ctx, probe, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "device probe.example.com/pool/device is in use: claim default/owner"), nil
	})
}

// createUnallocated creates a claim that no scheduler allocates.
func (c *cluster) createUnallocated(t *testing.T, name string) *resourceapi.ResourceClaim {
	t.Helper()
	claim, err := c.claims().Create(t.Context(), guarded.Claim(name), metav1.CreateOptions{})
	require.NoError(t, err)
	return claim
}

// allocate allocates the device to a claim. It retries while the guard is not active.
func (c *cluster) allocate(t *testing.T, name, driver string) {
	t.Helper()
	claim := c.createUnallocated(t, name)
	claim.Status.Allocation = guarded.Allocation(driver)
	env.Until(t, "claim "+name+" is allocated", func(ctx context.Context) (bool, error) {
		_, err := c.claims().UpdateStatus(ctx, claim, metav1.UpdateOptions{})
		return err == nil, nil
	})
}

// judged returns the number of writes with an outcome of the guard, over all running replicas.
func (g *guard) judged(t *testing.T, outcome string) int {
	t.Helper()
	pattern := regexp.MustCompile(`(?m)^celset_guard_judgement_duration_seconds_count\{result="` + outcome + `"\} (\d+)`)
	sum := 0
	for _, r := range g.replicas {
		select {
		case <-r.Done():
			continue
		default:
		}
		content, err := r.Get(t.Context(), "/metrics")
		require.NoError(t, err)
		found := pattern.FindSubmatch(content)
		require.NotNil(t, found, string(content))
		n, err := strconv.Atoi(string(found[1]))
		require.NoError(t, err)
		sum += n
	}
	return sum
}
