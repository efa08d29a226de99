// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/celset/celset/admission/guard"
)

// Path is the path of the webhook.
const Path = "/guard-allocations"

// Election configures the leader election. Only the leader judges.
type Election struct {
	// LeaseDuration is the time that other replicas wait for a renewal. RenewDeadline is the time that a replica judges after a
	// renewal. RetryPeriod is the time between two attempts to acquire or renew the lease. LeaseDuration must exceed
	// RenewDeadline, and RenewDeadline must exceed RetryPeriod.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// DefaultElection returns the values that Kubernetes' own programs use.
func DefaultElection() Election {
	return Election{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}
}

// Validate returns an error if a duration is not longer than the next one.
func (e Election) Validate() error {
	if e.RetryPeriod <= 0 || e.RenewDeadline <= e.RetryPeriod || e.LeaseDuration <= e.RenewDeadline {
		return fmt.Errorf("lease of the guard: the duration %s must be longer than the time for a renewal %s, which must be longer than the time between two attempts %s",
			e.LeaseDuration, e.RenewDeadline, e.RetryPeriod)
	}
	return nil
}

// Options configures a [Server].
type Options struct {
	// Client reads claims and slices, renews the lease, and labels pods. It should have no rate limit, because the API server waits
	// for answers.
	Client kubernetes.Interface
	// Namespace is the namespace of the lease and of the pods.
	Namespace string
	// Pod is the name of this replica's pod, or empty if the replica runs outside of a pod. The leader labels its pod
	// celset.dev/guard.
	Pod      string
	Election Election
	// Grace is the field Grace of guard.Options.
	Grace time.Duration
	// Metrics may be nil.
	Metrics *Metrics
	// Now is the clock. nil means time.Now.
	Now func() time.Time
}

// drainTime is the maximum time that a stopping replica waits until its admitted writes are settled. The watch shows the writes
// of schedulers within milliseconds.
const drainTime = 5 * time.Second

// Server handles the requests of a webhook, and runs as part of a manager.
type Server struct {
	options  Options
	identity string
	judging  http.Handler
	// term is the current term of this replica as leader. It is nil while the replica may not judge.
	term atomic.Pointer[term]
	// closing is read-locked during a judgement. After close has write-locked it, the server admits nothing any more.
	closing sync.RWMutex
	closed  bool
}

// New returns a server that judges while it runs.
func New(options Options) (*Server, error) {
	if options.Client == nil {
		return nil, errors.New("guard of allocations: there is no client")
	}
	if err := options.Election.Validate(); err != nil {
		return nil, err
	}
	options.Grace = cmp.Or(options.Grace, guard.DefaultGrace)
	if options.Now == nil {
		options.Now = time.Now
	}
	scheme := runtime.NewScheme()
	if err := resourceapi.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("guard of allocations: %w", err)
	}
	s := &Server{options: options, identity: options.Pod + "_" + string(uuid.NewUUID())}
	s.judging = &admission.Webhook{Handler: &judge{server: s, decoder: admission.NewDecoder(scheme)}}
	return s, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. The server has its own election.
func (s *Server) NeedLeaderElection() bool { return false }

// ServeHTTP judges a request, or refuses it if this replica does not lead.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.judging.ServeHTTP(w, r) }

// Start takes part in the election until the context ends. After Start has returned, the server admits nothing any more.
func (s *Server) Start(ctx context.Context) error {
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go func() {
		<-ctx.Done()
		s.close(working)
		stop()
	}()
	for working.Err() == nil {
		if err := s.campaign(working); err != nil {
			return err
		}
	}
	return nil
}

// close stops judging and waits up to drainTime until all admitted writes are settled. It releases the lease only if they are
// settled.
func (s *Server) close(ctx context.Context) {
	s.closing.Lock()
	s.closed = true
	s.closing.Unlock()
	t := s.term.Load()
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	for ctx.Err() == nil {
		if t.guard.Admitted() == 0 {
			t.lease.giveAway()
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}
