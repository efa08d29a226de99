// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cel evaluates CEL expressions that select a set of devices (package [github.com/celset/celset/cel/device]) or a
// cluster. It is independent of the kind of input and provides the common parts:
//
//   - [Environment]: the CEL environment of the pinned Kubernetes version plus
//     the variables of one kind of input. Only an Environment compiles expressions.
//   - [Program]: a compiled expression with the limits of one evaluation.
//   - [Error]: a mistake in an expression with its line and column, and
//     a caret below it as CEL prints it.
//   - [Budget]: the cost that many evaluations may spend together.
//   - [Observer]: a hook for metrics about compilations, cache hits and
//     evaluations.
//
// An Environment is built once and shared. It caches the results of recent compilations, including errors, in memory bounded in
// bytes. So retries of an expression that does not compile are cheap, too. Everything in this package is safe for concurrent use
// except a Budget, which belongs to one caller.
//
// Expressions are untrusted:
//
//   - Before parsing, the length, the words ([MaxTokens]) and the characters outside ASCII ([MaxWideCharacters]) are
//     limited. Before type checking, the parts, depth and types ([MaxNodes], [MaxDepth],
//     [MaxTypeSize]) and regular expressions are limited. An expression at the limits
//     compiles in about a tenth of a second.
//   - Macros don't duplicate the value that they are called on. CEL's own optMap and optFlatMap
//     duplicate it.
//   - An evaluation has a limit on its cost ([DefaultCostLimit]) and on the memory of results
//     ([DefaultMemoryLimit]). Each call is charged by the sizes of its operands before it
//     is made. A call that would exceed the limits is not made.
//   - An evaluation ends soon after its context: it checks the context every hundred steps or so, in loops and
//     elsewhere, and before each long call. A running call is not
//     interrupted, but its charge bounds its time.
//   - Panics in CEL become errors.
//
// Package [github.com/celset/celset/cel/meter] implements the limits of evaluations. A caller that evaluates many times limits
// all evaluations together by a Budget or by the context.
package cel
