// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expensive searches for expressions that take more time, or allocate more, than
// their cost in CEL says.
//
// The cost is all that limits what an expression does, so it has to be about proportional
// to the time. For each overload of each function of an environment the search makes
// calls with operands of all sizes, nested and in loops, keeps those with the most time or
// bytes per unit, and changes them at random: it climbs. What it makes is a function of a
// string of bytes, so that Go's fuzzing can look for such strings, too.
//
//	report := expensive.Search(ctx, environment, expensive.Options{Seed: 1, Duration: time.Hour})
//	fmt.Print(report)
//
// There is nothing against a hang here: an evaluation that does not end with its context,
// or takes all memory, is a finding, and the search says in [Options.Trying] which one it
// was before it tries it.
package expensive
