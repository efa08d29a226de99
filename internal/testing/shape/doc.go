// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shape is the table of set constraints that the search is measured
// with: hardware scenarios, each with its devices, its claim, the expression in
// CEL, and a search for this one shape that was written by hand, which is the
// limit for any search that starts from an expression. Package corpus has many more
// expressions, over nodes that are small enough to try all sets of; this one has a few
// shapes, of which each is measured in full.
//
//	for _, s := range shape.Scenarios() {
//		for _, occupancy := range s.Occupancies {
//			set, steps := s.HandWritten(s.All() &^ occupancy.InUse)
//			...                                  // what an allocator should answer
//			s.Holds(s.Names(set))                // true, or set is empty
//		}
//	}
//
// [Scenario.Claim], [Scenario.ResourceSlices] and [Scenario.DeviceClasses] give
// what an allocator is asked with. [Scenario.Variants] fills many nodes, no two
// alike.
//
// # The searches written by hand
//
// They work on words of 64 bits, a bit a device, and choose one device after the
// other in ascending order; after each choice they drop what can't be part of an
// answer any more (forward checking). So they return the same set as an exhaustive
// search in the allocator's order: the one that comes first when sets are compared
// as ascending lists of devices. They know the wiring, and allocate nothing.
//
// A step is a device tried, whether it was a choice or followed from one, and one
// more for the start. Steps don't depend on the machine, which makes them the
// measure that tests pin.
//
// None of them is a formula. A full rectangle, for example, could be found without
// any search by eroding the free devices with shifts; a formula has no steps to
// compare with.
package shape
