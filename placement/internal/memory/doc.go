// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory remembers three things about each Placement: its plan, the verdicts of its predicates for each version of a
// cluster, and the inputs of its last result ([Last]).
//
// The memory grows with the number of Placements times clusters, and with expressions that tenants write. So its size in bytes is
// limited. The Placement that was not decided for the longest time is forgotten first. Its entry is made again with its next
// decision. A Placement without UID or generation, as in a dry run, is never remembered.
package memory
