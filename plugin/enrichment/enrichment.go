// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package enrichment

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/celset/celset/deviceattributes"
	"github.com/celset/celset/plugin/metrics"
)

// Config has the parts of a scheduler that an Enrichment uses.
type Config struct {
	// Client reads DeviceAttributes objects and writes their status.
	Client dynamic.Interface
	// Slices lists the ResourceSlices without the attributes of objects.
	Slices fwk.ResourceSliceLister
	// Informers are the informers of the scheduler.
	Informers informers.SharedInformerFactory
	// Leads returns an error while another scheduler may lead.
	Leads func() error
	// Recorder returns the recorder of events.
	Recorder func() events.EventRecorderLogger
	Metrics  *metrics.Metrics
	Clock    clock.WithTicker
}

// Enrichment adds the attributes of DeviceAttributes objects to the ResourceSlices of a scheduler. A nil Enrichment adds nothing.
// It is safe for concurrent use.
type Enrichment struct {
	Config
	follower *follower
	reporter *reporter
	enricher *deviceattributes.Enricher

	// current is the result of the latest pass. It is nil while there are no objects.
	current atomic.Pointer[view]
	// requests has an element if a pass is necessary.
	requests chan struct{}
	// watching registers the handlers for nodes and ResourceSlices when the first object appears.
	watching sync.Once

	wakers wakers
	// compiled has the generations of the objects of the last call of Set. Only the goroutine of Run uses it.
	compiled map[types.UID]int64
}

// New returns an Enrichment. If the API server serves DeviceAttributes, New reads them. It must be called before the scheduler
// tries the first pod.
func New(ctx context.Context, config Config) (*Enrichment, error) {
	enricher, err := deviceattributes.NewEnricher(deviceattributes.Config{})
	if err != nil {
		return nil, err
	}
	e := &Enrichment{Config: config, enricher: enricher, requests: make(chan struct{}, 1)}
	e.follower = newFollower(&e.Config, func(isStatus bool) {
		if isStatus {
			e.reporter.request()
		} else {
			e.request()
		}
	})
	e.reporter = newReporter(&e.Config, e.follower)
	e.follower.readFirst(ctx)
	if objects := e.follower.list(); len(objects) > 0 {
		drivers := sets.New[string]()
		for _, object := range objects {
			drivers.Insert(object.Spec.Driver)
		}
		// No ResourceSlice of these drivers has been processed yet, so all their pools are incomplete.
		e.current.Store(&view{drivers: drivers})
	}
	return e, nil
}

// OnChange adds a function that is called with the drivers whose devices have changed attributes. It is called in the background,
// after the lister shows the attributes.
func (e *Enrichment) OnChange(wake func(drivers sets.Set[string])) {
	if e == nil {
		return
	}
	e.wakers.add(wake)
}

// request makes Run start a pass soon.
func (e *Enrichment) request() {
	select {
	case e.requests <- struct{}{}:
	default:
	}
}

const (
	// gathering is the time between a request and the pass. Objects, ResourceSlices and nodes often change together. The scheduler's
	// list of ResourceSlices may also change a little later than the informer, because DeviceTaintRules are applied first.
	gathering = 20 * time.Millisecond
	// secondLook is the time until a pass is repeated after a request, in case the list changed even later.
	secondLook = time.Second
	// recheck is the time between two passes without a request.
	recheck = 30 * time.Second
	// shortestRest is the minimum time between two passes.
	shortestRest = 100 * time.Millisecond
	// restPerPass makes passes use at most a fifth of a core.
	restPerPass = 4
	// longestRest bounds the time until a change has an effect.
	longestRest = 2 * time.Second
)

// Run enriches ResourceSlices until ctx is done.
func (e *Enrichment) Run(ctx context.Context) {
	go e.follower.run(ctx)
	go e.reporter.run(ctx)
	// Without all ResourceSlices and nodes, the reports would be wrong.
	cache.WaitForCacheSync(ctx.Done(), e.Informers.Resource().V1().ResourceSlices().Informer().HasSynced, e.Informers.Core().V1().Nodes().Informer().HasSynced)
	for wait := gathering; ctx.Err() == nil; {
		requested := e.await(ctx, wait)
		if requested {
			sleep(ctx, e.Clock, gathering)
		}
		began := e.Clock.Now()
		wait = recheck
		if e.pass(ctx) || requested {
			wait = secondLook
		}
		wait = min(wait, e.wakers.wake(e.Clock.Now()))
		sleep(ctx, e.Clock, min(max(shortestRest, restPerPass*e.Clock.Since(began)), longestRest))
	}
}

// await waits for a request, at most for the given time. It reports whether there is a request.
func (e *Enrichment) await(ctx context.Context, most time.Duration) bool {
	timer := e.Clock.NewTimer(most)
	defer timer.Stop()
	select {
	case <-e.requests:
		return true
	case <-timer.C():
	case <-ctx.Done():
	}
	return false
}

func sleep(ctx context.Context, by clock.Clock, wait time.Duration) {
	timer := by.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}
