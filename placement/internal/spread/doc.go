// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spread selects clusters from the ranked candidates within a Placement's spread constraints. It picks one at a time:
//
//  1. Candidates that a constraint with DoNotSchedule forbids are left out.
//  2. Among the others, the candidates that exceed the maxSkew of the ScheduleAnyway constraints least are preferred. Earlier
//     constraints have priority.
//  3. Among equal candidates, the one with the best rank is picked.
//
// A topology is a value that some candidate has for the key. A pick stays within maxSkew if afterwards the topology has at most
// maxSkew more picked clusters than any other topology. A topology still counts when all its candidates are picked. A cluster
// without the key is in no topology. DoNotSchedule never selects it. ScheduleAnyway selects it after all clusters in a topology.
//
// Candidates with the same topologies differ only in rank, so only the best candidate of each such class is considered.
package spread
