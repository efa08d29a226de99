// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan compiles the spec of a Placement. A [Plan] holds the spec's predicates, prioritizers, spread constraints and
// decision groups, and the mistakes in the spec. The number and size of these parts are limited.
package plan
