// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bitset has sets of devices, of which each is known by its position in a list:
// one bit for a device.
//
//	free := bitset.New(len(devices))
//	free.Add(3)
//	for i := range free.All() { // ascending
//		use(devices[i])
//	}
//
// A search asks all the time how many devices two sets have in common. With bits that takes
// a few instructions for 64 devices, and no memory.
//
// A set is made for a list of some length and does not grow. What takes two sets takes two of
// the same list; that is not checked.
package bitset
