// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bruteforce is a second, naive implementation of the allocator. It returns the first valid set of devices in the order
// of the claims, their requests and the devices.
//
//	solution, err := bruteforce.Solve(problem)
//
// It works in these steps:
//
//  1. Read the pools that the node can use, and the requests and constraints of the claims.
//  2. For the next claim, build every complete assignment of distinct devices to its requests, in order.
//  3. Skip an assignment if its devices are not available, or if it violates a constraint of the claim.
//  4. Continue with the next claim. A valid assignment of the last claim completes the solution.
//
// The package never prunes, undoes or caches, so mistakes are unlikely. It is far too slow for anything but tests. It evaluates
// CEL constraints with plain cel-go over plain maps. It shares no code with the allocator.
//
// The package handles no errors: requests must be valid, and their selectors must not fail. It does not support request
// policies, derived attributes, compatibility groups, and lists while the feature is off.
package bruteforce
