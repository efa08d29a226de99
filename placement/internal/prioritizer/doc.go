// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prioritizer gives candidates scores from -100 to 100, by which they are ranked.
// Each prioritizer is a file: steady.go, balance.go, allocatable.go and addon.go. A new one
// is a type with the methods of a scorer, and an entry in builtIn.
package prioritizer
