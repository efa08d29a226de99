// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memo remembers what was found out, in memory that is bounded in bytes.
//
// A [Memory] has the bound. What is kept in it is of any number of kinds, each a [Memo] with
// keys and values of its own types and with a function that says how large a value is. If
// there is no room, what was not used for the longest time goes first, of whichever kind. So
// a flood of one kind, or of one tenant, drives out what others use, which costs them time;
// what they are told is the same.
//
//	memory := memo.New(64 << 20)
//	squares := memo.In(memory, func(key int, value *big.Int) memo.Size { … })
//	square := squares.Get(7, func() big.Int { … })
//
// Of several who need a value at the same time one finds it out and the others wait, as long
// as their contexts permit. If it fails or panics, nothing is kept and the next one tries.
//
// # What counts
//
// A value counts for as many bytes as its size says, which is to be an honest estimate:
// nothing is measured. Keys, entries and the maps that they are in count by themselves. What
// several values point to is a [Part], which counts once as long as one of them is kept. A
// value that becomes larger later says so ([Entry.Grow]).
//
// What is too large for a quarter of the memory is not kept, but those who asked for it get
// it. What was dropped is garbage, and garbage until it is collected: a program that bounds
// its memory has a limit for the garbage collector besides.
package memo
