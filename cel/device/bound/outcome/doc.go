// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package outcome computes with values that are only partly determined.
//
// An [Outcome] is the set of results that a condition may still have: true, false, or an error. A [Number] is the range of values
// that an expression of type int may still have. [Limits] are the values that satisfy a comparison with a constant. The
// operations are CEL's: false absorbs an error in a conjunction, and an overflow is an error.
package outcome
