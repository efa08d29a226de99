// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prioritizer scores candidates from -100 to 100, to rank them. Each prioritizer is a file: steady.go, balance.go,
// allocatable.go and addon.go. A new prioritizer needs
//
//   - a type with the methods of a scorer, and an entry in builtIn;
//   - its name in the error message of coordinate;
//   - an entry in AmountsOf if it reads an amount of clusters, or a line in plan.Compile that sets Balances if it reads the decisions
//     of other Placements. Otherwise a ranking is reused although these have changed (memory.InputsOf).
package prioritizer
