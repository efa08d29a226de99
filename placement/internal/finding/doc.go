// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package finding collects what deciding a Placement finds out in addition to the decision. A [Misconfiguration] is an invalid
// part of the Placement. [Findings] holds warnings, messages about names that no cluster has, and the time at which the outcome
// may change although no object changes.
package finding
