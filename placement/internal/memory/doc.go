// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory remembers three things for each Placement: its plan, which is the compiled spec, the verdict of its predicates
// on each version of a cluster, and the inputs of its last result ([Last]).
//
// The memory grows with the number of Placements times the number of clusters, and with expressions that tenants write. So its
// size in bytes is limited. If it is full, the Placement that was decided longest ago is forgotten. Its next decision computes
// everything again. A Placement without UID or generation, as in a dry run, is never remembered.
package memory
