// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale tests placement on a hub with many clusters and Placements, while instances of the program are killed, and with
// malformed objects. Each test has its own API server. Short mode uses smaller numbers.
//
// The tests check values that don't depend on the speed of the machine: the numbers of evaluated clusters and of writes, and
// the PlacementDecisions that an observer sees.
package scale
