// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bruteforce is a second, dumb implementation of the promise that the
// allocator gives: of all sets of devices, in the order in which the claims, their
// requests and the devices stand, the first that is right.
//
//	solution, err := bruteforce.Solve(problem)
//
// It builds every complete assignment of distinct devices to the requests of a
// claim and only then asks whether it is right. There is no pruning, no undoing
// and no remembering, so there is little to get wrong, and it is far too slow for
// anything but tests. CEL constraints are evaluated with plain cel-go over plain
// maps. It shares no code with the allocator.
//
// It knows what a search means, not what an error means: requests must be valid
// and their selectors must not fail. What it does not know (request policies,
// derived attributes, compatibility groups, lists while the feature is off) must
// not be used. Constraints that compare attributes must not cover requests for all devices,
// because upstream makes an error of them.
package bruteforce
