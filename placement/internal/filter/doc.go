// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filter removes clusters that a Placement must not select. Each filter is a file:
// predicate.go removes clusters that no predicate matches, toleration.go clusters with a
// taint that is not tolerated. A filter gives a reason for each cluster that it removes.
package filter
