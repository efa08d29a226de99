// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale tests placement on a hub with many clusters and Placements, with killed instances, and with completely malformed
// objects. Each test has its own API server. Short mode uses smaller numbers.
//
// The tests pin values that do not depend on the machine: the numbers of evaluated clusters and of writes, and the
// PlacementDecisions that an observer sees.
package scale
