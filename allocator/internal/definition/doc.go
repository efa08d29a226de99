// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package definition compiles the constraints and preferences of claims and of their classes. A [Definition] is one constraint
// or preference. The definitions of a claim depend only on the claim and its classes, not on devices.
//
// A scheduler prepares claims before a scheduling cycle needs them. In the background, a [Preparer] decodes claims, limits the
// cost of their selectors, and compiles their selectors and expressions. An allocator uses the resulting [PreparedClaim]. For
// each size of sets, an expression is analyzed once for the whole process.
package definition
