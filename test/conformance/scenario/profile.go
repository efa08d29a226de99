// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

// Profile says what kinds of cases are drawn.
type Profile struct {
	// Faults allows input for which allocators return an error: missing classes,
	// selectors that fail or don't compile, features that are needed and off,
	// values from the future. Without it such input is not drawn at all.
	Faults bool
	// CELConstraints adds references to CEL device constraints and their definitions.
	CELConstraints bool
	// FailingExpression lets each case have exactly one CEL constraint, one that fails
	// at run time for some sets.
	FailingExpression bool

	// MaxDevices bounds the devices of the latest generation of all pools.
	MaxDevices int
	// MaxRequests bounds the requests of all claims of a case.
	MaxRequests int
	// MaxWanted bounds the devices wanted by all requests with an exact count,
	// not counting the absurd counts among the faults.
	MaxWanted int
}

// The sizes keep an exhaustive search short: in the first profile one that prunes
// by attribute constraints, in the others one that prunes nothing.
var (
	// Upstream is everything that upstream allocators understand.
	Upstream = Profile{Faults: true, MaxDevices: 10, MaxRequests: 5, MaxWanted: 7}
	// Sound is without what leads to an error.
	Sound = Profile{MaxDevices: 8, MaxRequests: 4, MaxWanted: 6}
	// CEL is Sound with CEL constraints.
	CEL = Profile{CELConstraints: true, MaxDevices: 8, MaxRequests: 4, MaxWanted: 6}
	// FailingCEL has CEL constraints whose expressions fail at run time.
	FailingCEL = Profile{CELConstraints: true, FailingExpression: true, MaxDevices: 6, MaxRequests: 3, MaxWanted: 4}
)
