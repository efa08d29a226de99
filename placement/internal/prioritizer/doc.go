// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prioritizer scores candidates from -100 to 100, to rank them. Each prioritizer is a file: steady.go, balance.go,
// allocatable.go and addon.go. A new one is a type with the methods of a scorer and an entry in
// builtIn. Its reads method says which inputs make a remembered ranking stale.
package prioritizer
