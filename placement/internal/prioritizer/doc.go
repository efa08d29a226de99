// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prioritizer scores candidates from -100 to 100, to rank them. Each prioritizer has its own file: steady.go,
// balance.go, allocatable.go and addon.go. A new prioritizer is a type that implements scorer, and an entry in builtIn. Its
// method reads names the inputs whose changes make a remembered ranking stale.
package prioritizer
