// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenario makes inputs for allocators: nodes, resource slices, device
// classes, claims, and what is in use already.
//
//	rapid.Check(t, func(t *rapid.T) {
//		c := scenario.Cases(scenario.Alpha).Draw(t, "case")
//		...
//	})
//
// A [Case] is everything that an allocator is given. It can be stored as YAML and
// loaded again. [Cases] draws random ones within a [Profile], which says what
// the allocators under test understand. Names and values come from small sets, so
// that claims and devices meet: about half of the claims can be allocated. Each
// case has a theme, of which it has much, and a little of everything else.
//
// [Gates] lists the optional features and [Traits] what else may make a case
// interesting. Tests count them, because a generator that no longer produces what it was written for fails nobody.
//
// There is one file for each kind of thing that is drawn. Everything is drawn
// so that the smallest draw is the plainest thing: shrinking then leaves only
// what a failure needs.
package scenario
