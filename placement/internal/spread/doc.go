// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spread picks the selected clusters from the ranked candidates, as far as the
// spread constraints of a Placement allow.
//
// Candidates are picked one by one, always the best ranked one of those that
// the constraints with DoNotSchedule allow and that exceed the maxSkew of the
// others the least, the first constraint counting most.
//
// A topology is a value that some candidate has for the key. Picking a cluster of
// one is within maxSkew if then no other topology has so few picked clusters that
// the difference is larger. A topology all of whose candidates are picked still
// counts. A cluster without the key is in no topology: DoNotSchedule never
// selects it, ScheduleAnyway after all that are in one.
//
// Candidates with the same topologies are interchangeable but for their rank, so
// only the first one of each such class is looked at.
package spread
