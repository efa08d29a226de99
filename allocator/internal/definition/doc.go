// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package definition compiles the constraints and preferences of claims and of their classes. A [Definition] is a single
// constraint or preference. The definitions of a claim depend only on the claim and its classes, not on devices.
//
// A scheduler prepares claims before a scheduling cycle needs them. A [Preparer] decodes claims, bounds the cost of their
// selectors and compiles their texts in the background. An allocator looks up the [PreparedClaim]. Expressions are analyzed
// once for each size of sets, for the whole process.
package definition
