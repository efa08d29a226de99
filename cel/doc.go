// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cel evaluates CEL expressions that select something: a set of
// devices (package [github.com/celset/celset/cel/device]) or a cluster. It
// knows nothing of what is selected; it owns what every selection needs:
//
//   - [Environment]: the CEL environment of the pinned Kubernetes version plus
//     the variables of one kind of input, and the only way to compile.
//   - [Program]: a compiled expression with its runtime cost limit.
//   - [Error]: what is wrong with an expression, at which line and column, with
//     the caret below it as CEL prints it.
//   - [Budget]: the cost that many evaluations may spend together.
//   - [Observer]: one hook through which metrics see compilations, cache hits and
//     evaluations.
//
// An Environment is built once and shared. It remembers the outcome of recent
// compilations, failures too, so an expression that does not compile costs no
// more in a retry loop than one that does. Everything here is safe for
// concurrent use except a Budget, which belongs to one caller.
//
// Expressions are untrusted: their length is limited before they are parsed,
// every evaluation has a cost limit, and evaluation stops when its context
// ends.
package cel
