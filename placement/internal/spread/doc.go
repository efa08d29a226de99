// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spread selects clusters from the ranked candidates within a Placement's spread constraints. It picks one cluster at a
// time:
//
//  1. Candidates that a constraint with DoNotSchedule forbids are left out.
//  2. Among the other candidates, it prefers the candidates that exceed the maxSkew of the ScheduleAnyway constraints least.
//     Earlier constraints have priority.
//  3. Among equal candidates, it picks the candidate with the best rank.
//
// A topology is a value that some candidate has for the constraint's key. A pick stays within maxSkew if afterwards the
// topology has at most maxSkew more picked clusters than any other topology. A topology still counts when all its candidates
// are picked. A cluster without the key is in no topology. DoNotSchedule never selects it. ScheduleAnyway selects it after all
// clusters in a topology.
//
// Candidates that are in the same topologies for all constraints form a class. They differ only in rank, so only the best
// candidate of each class is considered.
package spread
