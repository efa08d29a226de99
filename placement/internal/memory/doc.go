// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory remembers what is known of Placements: the plan of each, the verdicts of
// its predicates on each version of a cluster, and the inputs of its last result ([Last]).
//
// The memory grows with Placements times clusters, and with expressions, which tenants
// write. So it has a bound in bytes. The Placement that was not decided for the longest time
// is forgotten first, and what is known of it is found again when it is decided the next
// time. Nothing is remembered of a Placement without UID or generation, as dry runs have it.
package memory
