// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expensive makes expressions that may take more time, or allocate more, than their cost in CEL
// says, for fuzzing.
//
// The cost is all that limits what an expression does, so it has to be about proportional to the time. For
// each overload of each function of an environment there are calls with operands of all sizes, nested and
// in loops. Which one is made is a function of a string of bytes, so that Go's fuzzing looks for such strings:
//
//	make fuzz-expensive FUZZTIME=1h
package expensive
