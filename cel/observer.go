// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import "time"

// Observer is told what an [Environment] does, to count it. The methods are
// called concurrently and must not block.
type Observer interface {
	// ObserveCompilation is called once for each call of Compile. hit tells that
	// the outcome was remembered, err is that outcome.
	ObserveCompilation(environment string, hit bool, err error)
	// ObserveEvaluation is called once for each evaluation with what it was charged,
	// in CEL cost units: see [Budget].
	ObserveEvaluation(environment string, cost uint64, err error)
}

// Timer is an [Observer] that is also told how long evaluations take. It brings the
// clock: with another Observer, or none, nobody looks at one.
type Timer interface {
	Observer
	// Now is the time that durations are differences of.
	Now() time.Time
	// ObserveDuration is called once for each evaluation, before ObserveEvaluation is.
	ObserveDuration(environment string, duration time.Duration)
}

type unobserved struct{}

func (unobserved) ObserveCompilation(string, bool, error)  {}
func (unobserved) ObserveEvaluation(string, uint64, error) {}
