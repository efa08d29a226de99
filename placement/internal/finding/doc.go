// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package finding collects what is found about a Placement besides its decision. A
// [Misconfiguration] is a part of the Placement that can't be understood. [Findings] has
// warnings, messages about names that no cluster has, and the time at which the outcome
// may change though no object does.
package finding
