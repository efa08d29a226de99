// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/celset/celset/admission/guard"
	"github.com/celset/celset/apis/wellknown"
)

const (
	// settlePeriod is the time between two searches for admitted writes that can't be stored any more. settleMost is the
	// maximum number of claims that one search reads.
	settlePeriod = 5 * time.Second
	settleMost   = 100
)

// term is the period between acquiring and losing the lease. The replica judges during its term.
type term struct {
	lease *lease
	guard *guard.Guard
}

// campaign takes part in one election, and judges while this replica holds the lease.
func (s *Server) campaign(ctx context.Context) error {
	e := s.options.Election
	l := &lease{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: s.options.Namespace, Name: wellknown.LeaseGuard}, Client: s.options.Client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: s.identity},
		},
		now: s.options.Now, valid: e.RenewDeadline, grace: s.options.Grace,
	}
	// leading is locked while lead runs.
	var leading sync.Mutex
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l, LeaseDuration: e.LeaseDuration, RenewDeadline: e.RenewDeadline, RetryPeriod: e.RetryPeriod, ReleaseOnCancel: true, Name: wellknown.LeaseGuard,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				leading.Lock()
				defer leading.Unlock()
				if ctx.Err() == nil {
					s.lead(ctx, l)
				}
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("elect a guard of allocations: %w", err)
	}
	elector.Run(ctx)
	// Wait until lead returns. elector.Run returns earlier, because it does not wait for OnStartedLeading.
	leading.Lock()
	defer leading.Unlock()
	return nil
}

// lead waits until all writes that other replicas admitted are settled. Then it judges until the context ends.
func (s *Server) lead(ctx context.Context, l *lease) {
	logger := klog.FromContext(ctx)
	if s.options.Pod != "" {
		go wait.UntilWithContext(ctx, s.selectPod, s.options.Election.RetryPeriod)
	}
	if !l.wasHandedOver() {
		logger.Info("Waiting until allocations that were admitted earlier are stored or can't be stored any more", "after", s.options.Grace)
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.options.Grace):
		}
	}
	t := &term{lease: l, guard: guard.New(guard.Options{Live: live{s.options.Client}, Grace: s.options.Grace, Now: s.options.Now})}
	if !follow(ctx, s.options.Client, t.guard) {
		return
	}
	s.term.Store(t)
	defer func() {
		if s.term.CompareAndSwap(t, nil) {
			s.options.Metrics.looked(nil)
		}
	}()
	logger.Info("Guarding allocations")
	for {
		s.options.Metrics.looked(t.guard)
		select {
		case <-ctx.Done():
			logger.Info("Guarding allocations no longer")
			return
		case <-time.After(settlePeriod):
		}
		if err := t.guard.Settle(ctx, settleMost); err != nil && ctx.Err() == nil {
			logger.Error(err, "Reading claims whose admitted allocation is not stored yet")
		}
	}
}
