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

// Path is where the webhook is.
const Path = "/guard-allocations"

// Election is how replicas agree on the leader, which is the one that judges.
type Election struct {
	// LeaseDuration is how long the others wait for a renewal, RenewDeadline how long a replica judges after one,
	// and RetryPeriod how often it is tried. Each must be longer than the next.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// DefaultElection is that of Kubernetes' own programs.
func DefaultElection() Election {
	return Election{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}
}

// Validate says what is wrong.
func (e Election) Validate() error {
	if e.RetryPeriod <= 0 || e.RenewDeadline <= e.RetryPeriod || e.LeaseDuration <= e.RenewDeadline {
		return fmt.Errorf("lease of the guard: the duration %s must be longer than the time for a renewal %s, and that longer than the time between two attempts %s",
			e.LeaseDuration, e.RenewDeadline, e.RetryPeriod)
	}
	return nil
}

// Options are those of a [Server].
type Options struct {
	// Client reads claims and slices, keeps the lease, and writes the label of pods. It should not wait for its turn:
	// requests are answered while the API server waits.
	Client kubernetes.Interface
	// Namespace is that of the lease and of the pods.
	Namespace string
	// Pod is the name of the pod of this replica, empty if it is in none. See the label celset.dev/guard.
	Pod      string
	Election Election
	// Grace is that of guard.Options.
	Grace time.Duration
	// Metrics may be nil.
	Metrics *Metrics
	// Now is the clock; nil is that of the machine.
	Now func() time.Time
}

// drainTime is how long a replica that ends waits for what became of what it admitted. Schedulers' writes are
// seen in milliseconds.
const drainTime = 5 * time.Second

// Server answers for a webhook, and runs as a part of a manager.
type Server struct {
	options  Options
	identity string
	judging  http.Handler
	// term is what this replica judges by: nil if it may not.
	term atomic.Pointer[term]
	// closing is held by judgements for reading. When it was held for writing, nothing is admitted any more.
	closing sync.RWMutex
	closed  bool
}

// New returns a server that judges when it runs.
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

// NeedLeaderElection implements manager.LeaderElectionRunnable: it elects by itself.
func (s *Server) NeedLeaderElection() bool { return false }

// ServeHTTP judges, or refuses if this replica does not lead.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.judging.ServeHTTP(w, r) }

// Start takes part in the election until the context ends. It returns when nothing is admitted any more.
func (s *Server) Start(ctx context.Context) error {
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go func() {
		<-ctx.Done()
		s.close(working)
		stop()
	}()
	for working.Err() == nil {
		if err := s.stand(working); err != nil {
			return err
		}
	}
	return nil
}

// close stops judging and waits, for a short time, until it is known what became of what was admitted. The
// lease is given away only then.
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
