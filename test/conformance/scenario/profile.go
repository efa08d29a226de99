// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

// Profile says what kinds of cases are drawn.
type Profile struct {
	// Faults allows input for which allocators return an error: missing classes,
	// selectors that fail or don't compile, features that are needed and off,
	// amounts that can't be represented, values from the future. Without it such
	// input is not drawn at all.
	Faults bool
	// FailingSelectors makes selectors that fail at run time on some devices common.
	FailingSelectors bool
	// Alpha lets the features be on that only upstream's experimental variant knows.
	Alpha bool
	// Simple leaves out derived attributes, compatibility groups and request
	// policies: what the brute force search does not know.
	Simple bool
	// CELConstraints adds references to CEL device constraints and their definitions.
	CELConstraints bool
	// FailingExpression lets each case have exactly one CEL constraint, one that fails
	// at run time for some sets.
	FailingExpression bool
	// Scarce makes all cases want about as many devices as there are.
	Scarce bool

	// MaxDevices bounds the devices of the latest generation of all pools, but for
	// crowds: rare slices with many devices of which claims want few.
	MaxDevices int
	// MaxRequests bounds the requests of all claims of a case.
	MaxRequests int
	// MaxWanted bounds the devices wanted by all requests with an exact count, the
	// largest of alternatives, not counting absurd counts.
	MaxWanted int
	// MaxSets bounds the ways to choose devices for all requests if nothing were in
	// use and everything matched.
	MaxSets float64
}

// The sizes keep an exhaustive search short: in the first profiles one that
// prunes by attribute constraints, in the others one that prunes nothing.
var (
	// Beta is everything that upstream's incubating variant understands.
	Beta = Profile{Faults: true, MaxDevices: 10, MaxRequests: 5, MaxWanted: 7, MaxSets: 20_000}
	// Alpha is everything that upstream's experimental variant understands.
	Alpha = Profile{Faults: true, Alpha: true, MaxDevices: 10, MaxRequests: 5, MaxWanted: 7, MaxSets: 20_000}
	// Hopeless has too few devices for most cases, and selectors that fail on some.
	Hopeless = Profile{Faults: true, Alpha: true, FailingSelectors: true, Scarce: true, MaxDevices: 9, MaxRequests: 4, MaxWanted: 11, MaxSets: 100_000}
	// Sound is without what leads to an error.
	Sound = Profile{Alpha: true, Simple: true, MaxDevices: 8, MaxRequests: 4, MaxWanted: 6, MaxSets: 4_000}
	// CEL is Sound with CEL constraints.
	CEL = Profile{Alpha: true, Simple: true, CELConstraints: true, MaxDevices: 8, MaxRequests: 4, MaxWanted: 6, MaxSets: 4_000}
	// FailingCEL has CEL constraints whose expressions fail at run time.
	FailingCEL = Profile{Alpha: true, Simple: true, CELConstraints: true, FailingExpression: true,
		MaxDevices: 6, MaxRequests: 3, MaxWanted: 4, MaxSets: 1_000}
	// HopelessCEL is FailingCEL with too few devices for most cases.
	HopelessCEL = Profile{Alpha: true, Simple: true, CELConstraints: true, FailingExpression: true, Scarce: true,
		MaxDevices: 6, MaxRequests: 4, MaxWanted: 7, MaxSets: 4_000}
)
