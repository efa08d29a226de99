// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

const (
	churnPods = 30
	// churnAtOnce pods want more than the two and four that fit at a time.
	churnAtOnce = 8
)

// TestChurn has pods come and go on the node while kubelet and drivers are restarted.
// That no device was given away twice is for the ledger and the drivers to say.
func TestChurn(t *testing.T) {
	before := cluster.ledger.Entries().Allocations
	stories := []*told{ring, grid}
	var pods []string
	for i := range churnPods {
		pods = append(pods, fmt.Sprintf("churn-%d", i))
	}
	removeAtEnd(t, pods...)

	refusedBefore := map[*told]float64{}
	for _, s := range stories {
		refusedBefore[s] = refused(t, s)
	}
	var ended atomic.Int32
	halfway := make(chan struct{})
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(churnAtOnce + 1) // and the one below
	group.Go(func() error {
		select {
		case <-halfway:
		case <-ctx.Done():
			return ctx.Err()
		}
		cluster.node.KillKubelet()
		return startKubelet()
	})
	for i, name := range pods {
		s := stories[i%len(stories)]
		group.Go(func() error {
			if err := s.comeAndGo(ctx, name); err != nil {
				return err
			}
			if ended.Add(1) == churnPods/2 {
				close(halfway)
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	for _, s := range stories {
		require.Equal(t, refusedBefore[s], refused(t, s), "the driver was to prepare a device for two claims")
	}
	require.Eventually(t, func() bool { return cluster.ledger.Entries().Allocations-before >= churnPods }, patience, pollPeriod,
		"the ledger has read as many allocations as there were pods")
	require.NoError(t, cluster.ledger.Entries().Err())
}

// comeAndGo is the life of a pod. What it saw is checked when it has ended: others may
// have its devices by then.
func (s *told) comeAndGo(ctx context.Context, name string) error {
	if err := s.create(ctx, name, ends("1s")); err != nil {
		return err
	}
	if _, err := waitSucceeded(ctx, name); err != nil {
		return err
	}
	if _, err := s.check(ctx, name); err != nil {
		return err
	}
	return remove(ctx, name)
}
