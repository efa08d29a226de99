// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package predicate compiles the predicates of a Placement, which are label selectors,
// claim selectors and CEL expressions, and matches clusters with them.
package predicate
