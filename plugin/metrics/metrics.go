// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/celset/celset/cel"
)

// Registry registers metrics. [metrics.KubeRegistry] implements it.
type Registry interface {
	Register(metrics.Registerable) error
	CustomRegister(metrics.StableCollector) error
}

// Metrics counts and measures events. It is safe for concurrent use.
type Metrics struct {
	now func() time.Time

	durations, steps, spending, nodeSets                                      *metrics.HistogramVec
	cost, enrichments                                                         *metrics.Histogram
	evaluations, failures, compilations, cached, exhaustions, refusals, unfit *metrics.CounterVec
	preferences, preemptions, holdsEnded, pendingWrites, counts, publications *metrics.CounterVec
	cuts, victims, wasted, outOfRange                                         *metrics.Counter
	holds                                                                     *collector[func() int]
	claims                                                                    *collector[ListClaims]
	deviceSets                                                                *collector[*Fragmentation]
	attributes                                                                *collector[Attributes]
}

var _ cel.Observer = (*Metrics)(nil)

// New creates metrics that use the clock now, and registers them. It returns an error if they are already registered.
func New(registry Registry, now func() time.Time) (*Metrics, error) {
	m := &Metrics{now: now, claims: newClaims(), holds: newHolds(), deviceSets: newDeviceSets(), attributes: newAttributes()}
	m.define()
	for _, one := range []metrics.Registerable{
		m.durations, m.steps, m.spending, m.cost, m.evaluations, m.failures, m.compilations, m.cuts, m.cached,
		m.exhaustions, m.refusals, m.unfit, m.outOfRange, m.preferences,
		m.preemptions, m.victims, m.wasted, m.holdsEnded, m.pendingWrites, m.counts, m.publications, m.nodeSets, m.enrichments,
	} {
		if err := registry.Register(one); err != nil {
			return nil, fmt.Errorf("register metric %s: %w", one.FQName(), err)
		}
	}
	for _, one := range []struct {
		name string
		metrics.StableCollector
	}{{claimsName, m.claims}, {holdsName, m.holds}, {setsName, m.deviceSets}, {attributesName, m.attributes}} {
		if err := registry.CustomRegister(one.StableCollector); err != nil {
			return nil, fmt.Errorf("register metric %s: %w", one.name, err)
		}
	}
	m.begin()
	return m, nil
}

// Default returns the metrics that are registered for /metrics of the process. All profiles of a scheduler share them.
func Default() (*Metrics, error) { return shared() }

// Unregistered returns metrics that are not registered, so observing them has no effect.
func Unregistered() (*Metrics, error) { return New(nowhere{}, time.Now) }

var shared = sync.OnceValues(func() (*Metrics, error) { return New(legacy{}, time.Now) })

// legacy registers metrics in the registry that the process exports on /metrics.
type legacy struct{}

func (legacy) Register(one metrics.Registerable) error { return legacyregistry.Register(one) }
func (legacy) CustomRegister(all metrics.StableCollector) error {
	return legacyregistry.CustomRegister(all)
}

// nowhere is a Registry that ignores registrations.
type nowhere struct{}

func (nowhere) Register(metrics.Registerable) error          { return nil }
func (nowhere) CustomRegister(metrics.StableCollector) error { return nil }
