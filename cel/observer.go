// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import "time"

// Observer receives events of an [Environment] for metrics. The methods are called concurrently and must not block.
type Observer interface {
	// ObserveCompilation is called once for each call of Compile. hit is true if the result was cached. err is the error that
	// Compile returns.
	ObserveCompilation(environment string, hit bool, err error)
	// ObserveEvaluation is called once for each evaluation. cost is the charged cost in CEL cost units: see [Budget].
	ObserveEvaluation(environment string, cost uint64, err error)
}

// Timer is an [Observer] that also receives the durations of evaluations. A Timer also is the clock. Without a Timer no clock
// is read.
type Timer interface {
	Observer
	// Now returns the current time.
	Now() time.Time
	// ObserveDuration is called once for each evaluation, before ObserveEvaluation.
	ObserveDuration(environment string, duration time.Duration)
}

type unobserved struct{}

func (unobserved) ObserveCompilation(string, bool, error)  {}
func (unobserved) ObserveEvaluation(string, uint64, error) {}
