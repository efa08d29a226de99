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
	// guardGrace and guardLease are long enough for an API server and for lease renewals on a busy machine.
	guardGrace = 5 * time.Second
	guardLease = 12 * time.Second
)

// A guard is the webhook against double allocations, as an overlay renders it. Its replicas run on this machine.
type guard struct {
	c        *cluster
	overlay  *guarded.Overlay
	replicas []*guarded.Replica
}

// installGuard applies the overlay, except for the ValidatingWebhookConfiguration.
func (c *cluster) installGuard(t *testing.T) *guard {
	t.Helper()
	overlay, err := guarded.Render(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, overlay.Install(t.Context(), c.RESTConfig()))
	return &guard{c: c, overlay: overlay}
}

// startReplica starts a replica of the webhook, and waits until it is ready.
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

// ask creates the ValidatingWebhookConfiguration, so that the API server calls the replica.
func (g *guard) ask(t *testing.T, r *guarded.Replica) {
	t.Helper()
	require.NoError(t, g.overlay.Ask(t.Context(), g.c.RESTConfig(), r.Address))
}

// waitUntilActive waits until the guard rejects the allocation of a device that another claim has. It tries with dry runs, so
// no allocation is stored.
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

// allocate writes an allocation with the driver's device into a claim. It retries until the guard is active.
func (c *cluster) allocate(t *testing.T, name, driver string) {
	t.Helper()
	claim := c.createUnallocated(t, name)
	claim.Status.Allocation = guarded.Allocation(driver)
	env.Until(t, "claim "+name+" is allocated", func(ctx context.Context) (bool, error) {
		_, err := c.claims().UpdateStatus(ctx, claim, metav1.UpdateOptions{})
		return err == nil, nil
	})
}

// judged returns how many writes the running replicas have judged with the outcome.
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
