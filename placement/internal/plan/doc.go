// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan compiles the spec of a Placement. A [Plan] has its predicates, prioritizers,
// spread constraints and decision groups, and what is wrong with them. Its parts are
// bounded in number and size.
package plan
