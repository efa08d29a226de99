// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allocator finds devices for resource claims on one node, as
// [k8s.io/dynamic-resource-allocation/structured] does, and besides it knows
// CEL device constraints: one expression over the whole set of devices that
// requests get (KEP-5254).
//
//	a, err := allocator.NewAllocator(ctx, features, state, classes, slices, celCache)
//	results, err := a.Allocate(ctx, node, claims)
//
// An [Allocator] is made for one scheduling attempt and then asked for any
// number of nodes, concurrently. The package is pure: it has no clock, calls no
// API and starts no goroutines, so that schedulers and autoscalers can embed it.
//
// # The promise
//
// For claims without CEL constraints the answer is upstream's: the same devices,
// configuration and node selector, or none. For claims with CEL constraints the
// answer is that of an exhaustive search: the first set, in upstream's order,
// for which all constraints are satisfied, or none if there is no such set, or
// the first error that this search meets.
//
// # The search
//
// Devices are put in one order: pools by driver and name, their slices by name,
// devices as they stand in the slice ([candidate]). Claims are served in the order
// given, requests in the order of the claim. For each device that a request
// wants, the search ([search]) takes the first one that is free, selected and not
// refused by a constraint, and goes on from there. If it gets stuck it gives back
// the last device and takes the next one instead. Within a request devices are
// taken in ascending order, so each set is tried once: 6 free devices have 15 sets
// of 4, not 360 sequences. The first complete solution is the answer.
//
// A request with alternatives is met by the first of them with which everything
// after it can be met too: the search goes through them as it goes through
// devices ([alternatives]).
//
// What is left of the devices is in one place ([availability]): a device can be in
// use, share counters with others that are, or have shares of its capacity given
// away, by allocations from before and by what the search took so far.
//
// A constraint ([constraint]) sees devices come and go. One that compares
// attributes refuses a device that can't be part of any solution with those
// already taken. A CEL constraint can't: that two devices are not neighbours does
// not mean that a third won't connect them. It waits until the set is complete and
// asks the expression then.
//
// What a device costs to find out is done as late as possible. Selectors are
// evaluated only for free devices that the search comes to; one that fails on a
// device at the end of the list harms nobody who is served from its beginning.
//
// When the search had to give something back it starts to look ahead: a branch in
// which fewer devices are left than wanted is not entered (bound.go). A branch is
// only cut where nothing remains to be evaluated, so that no error goes unnoticed.
//
// All state of a search is in one struct. Taking a device pushes it on a stack and
// giving it back pops it; after that everything is exactly as it was.
package allocator
