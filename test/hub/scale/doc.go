// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale has tests of placement on a hub with many clusters and Placements,
// with instances that are killed, and with objects in which everything is wrong. Each
// has a real API server of its own. In short mode there are fewer of everything.
//
// The tests pin what does not depend on the machine: how many clusters are evaluated,
// how much is written, and what an observer of the PlacementDecisions sees.
package scale
