// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cel evaluates CEL expressions that select something: a set of
// devices (package [github.com/celset/celset/cel/device]) or a cluster. It
// knows nothing of what is selected; it owns what every selection needs:
//
//   - [Environment]: the CEL environment of the pinned Kubernetes version plus
//     the variables of one kind of input, and the only way to compile.
//   - [Program]: a compiled expression with the limits of one evaluation.
//   - [Error]: what is wrong with an expression, at which line and column, with
//     the caret below it as CEL prints it.
//   - [Budget]: the cost that many evaluations may spend together.
//   - [Observer]: one hook through which metrics see compilations, cache hits and
//     evaluations.
//
// An Environment is built once and shared. It remembers the outcome of recent
// compilations, failures too, in memory that is bounded in bytes, so an expression
// that does not compile costs no more in a retry loop than one that does. Everything
// here is safe for concurrent use except a Budget, which belongs to one caller.
//
// Expressions are untrusted:
//
//   - Length, words ([MaxTokens]) and characters that are not ASCII ([MaxWideCharacters]) are
//     limited before they are parsed; parts, depth and types ([MaxNodes], [MaxDepth],
//     [MaxTypeSize]) and regular expressions before types are checked. One at the limits
//     compiles in about a tenth of a second.
//   - Macros name what they are called on once: optMap and optFlatMap of CEL write it out
//     twice.
//   - An evaluation has a limit of cost ([DefaultCostLimit]) and one of what its functions
//     make ([DefaultMemoryLimit]). Each call is charged by the sizes of its operands before it
//     is made, so none begins that takes more than is left.
//   - It ends soon after its context: that is looked at every hundred steps or so, in loops as
//     elsewhere, and before each call that takes long. A call that has begun is not
//     interrupted, and takes what was charged for it.
//   - What CEL panics over is an error.
//
// Package [github.com/celset/celset/cel/meter] does what is about evaluations. Whoever
// evaluates many times has a limit for all of them: a Budget, or the context.
package cel
