// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memo is a cache with a bound in bytes.
//
// A [Memory] has the bound. It holds entries of any number of kinds. Each kind is a [Memo] with its own types of keys and values
// and a function that returns the size of a value. If the memory is full, the least recently used entry of any kind is dropped
// first. So a flood of one kind, or of one tenant, evicts entries of others. The others lose time, but get the same results.
//
//	memory := memo.New(64 << 20)
//	squares := memo.In(memory, func(key int, value *big.Int) memo.Size { … })
//	square := squares.Get(7, func() big.Int { … })
//
// If several callers need a value at the same time, one of them computes it. The others wait for the value or for the end of
// their context. If the computation fails or panics, nothing is stored and the next caller computes.
//
// # Sizes
//
// The size of a value is an estimate by its size function. Nothing is measured. Keys, entries and maps are counted automatically.
// Memory that several values point to is a [Part], which counts once while one of the values is stored. A value that grows later
// must be reported ([Entry.Grow]).
//
// A value larger than a quarter of the memory is not stored, but returned to its callers. Dropped values remain in memory until
// they are collected, so a program with a memory bound also needs a limit for the garbage collector.
package memo
