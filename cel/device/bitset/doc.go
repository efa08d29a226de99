// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bitset provides sets of devices. A device is identified by its position in a list and takes one bit:
//
//	free := bitset.New(len(devices))
//	free.Add(3)
//	for i := range free.All() { // ascending
//		use(devices[i])
//	}
//
// A search constantly counts the devices that two sets have in common. With bits this takes a few instructions per 64 devices,
// and no memory is allocated.
//
// A set is made for a list of fixed length and does not grow. Functions on two sets require sets of the same list; they don't
// check it.
package bitset
