// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan compiles the spec of a Placement. A [Plan] holds the predicates, prioritizers, spread constraints, decision
// groups, and mistakes of the spec. The number and size of the parts are limited.
package plan
