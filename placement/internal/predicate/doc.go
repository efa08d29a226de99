// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package predicate compiles the predicates of a Placement and matches clusters with them. Predicates are label selectors,
// claim selectors and CEL expressions.
package predicate
