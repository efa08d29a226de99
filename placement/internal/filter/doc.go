// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filter removes clusters that a Placement must not select, and gives a reason for each cluster. Each filter has its
// own file. predicate.go removes clusters that no predicate matches. toleration.go removes clusters with an untolerated taint.
package filter
