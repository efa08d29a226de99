// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memo is a cache whose memory is bounded in bytes.
//
// A [Memory] has the bound. It holds entries of several kinds. Each kind is a [Memo] with its own types of keys and values, and
// a function that returns the size of a value. If the memory is full, the least recently used entry of any kind is dropped. So
// many entries of one kind, or of one tenant, evict other entries. Evicted values must be computed again, which only takes
// time.
//
//	memory := memo.New(64 << 20)
//	squares := memo.In(memory, func(key int, value *big.Int) memo.Size { … })
//	square := squares.Get(7, func() big.Int { … })
//
// If several callers need the same value at the same time, one of them computes it. The others wait for the value or for the
// end of their context. If the computation fails or panics, nothing is stored, and the next caller computes the value.
//
// # Sizes
//
// The size function estimates the size of a value; nothing is measured. Keys, entries and maps are counted automatically. If
// several values point to the same memory, this memory is a [Part], which counts once as long as one of the values is stored.
// If a value grows later, the caller must report it ([Entry.Grow]).
//
// A value larger than a quarter of the memory is returned to the callers that wait for it, but not stored. Dropped values
// remain in memory until they are collected, so a program with a memory bound also needs a limit for the garbage collector.
package memo
