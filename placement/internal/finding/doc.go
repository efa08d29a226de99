// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package finding collects findings about a Placement other than its decision. A [Misconfiguration] is an invalid part of the
// Placement. [Findings] holds warnings, messages about names that no cluster has, and the time at which the outcome may change
// without a change of any object.
package finding
