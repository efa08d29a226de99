// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

// The occupancies that were thought out, as pictures of the meshes and tori. A test
// checks that each is what it is said to be.

// Posts: each square of 2x2 has one of its four devices in use, and each free device
// has two free neighbours all the same.
const (
	posts4x4 = `
		....
		.x.x
		....
		.x.x`
	posts4x4LessLast = `
		....
		.x.x
		....
		.x..`
	posts8x8 = `
		........
		.x.x.x.x
		........
		.x.x.x.x
		........
		.x.x.x.x
		........
		.x.x.x.x`
	posts8x8LessLast = `
		........
		.x.x.x.x
		........
		.x.x.x.x
		........
		.x.x.x.x
		........
		.x.x.x..`
	// On a torus the last post has squares around it that begin with device 0.
	posts8x8LessOne = `
		........
		.x.x.x.x
		........
		.x.x.x.x
		........
		.x.x...x
		........
		.x.x.x.x`
)

// Cycles: every free device has two free neighbours, but what is closed in itself
// has another size than wanted.
const (
	// 28 and 12.
	ringInRing = `
		........
		.xxxxxx.
		.x....x.
		.x.xx.x.
		.x.xx.x.
		.x....x.
		.xxxxxx.
		........`
	// 28 and 8.
	ringAroundEight = `
		........
		.xxxxxx.
		.xxxxxx.
		.xx...x.
		.xx.x.x.
		.xx...x.
		.xxxxxx.
		........`
	// On a torus: 20 and 4.
	twentyAndFour = `
		......xx
		.xxxx.xx
		.x..x.xx
		.x..x.xx
		.xxxx.xx
		......xx
		xxxxxxxx
		xxxxxxxx`
	// On a torus: 20, 4 and 4.
	twentyFourAndFour = `
		......xx
		.xxxx.xx
		.x..x.xx
		.x..x.xx
		.xxxx.xx
		......xx
		xxxxxx..
		xxxxxx..`
	// On a torus: a row and a column of 8, that have a device in common, and 16.
	crossAndSixteen = `
		........
		.xxxxxxx
		.x.....x
		.x.xxx.x
		.x.x.x.x
		.x.xxx.x
		.x.....x
		.xxxxxxx`
)

// On a torus of 4x4, found by going through all that there are: as many devices as
// can be free without an answer, and as many as can be with but one.
const (
	torus4x4NoCycle = `
		..x.
		x...
		..x.
		.x.x`
	torus4x4OneCycle = `
		...x
		.xx.
		x...
		.x..`
	torus4x4NoneOfEight = `
		.x..
		..x.
		.x..
		..xx`
	torus4x4OneOfEight = `
		x.x.
		.x.x
		....
		....`
)

// Blocks: each block of the wanted size has a device in use, and few devices do
// that.
const (
	boardNoBlock = `
		........
		...x...x
		.x...x..
		........`
	boardLastBlock = `
		.x...x..
		...x...x
		...x....
		........`
	meshNoBlock = `
		........
		........
		........
		...x...x
		........
		........
		........
		...x...x`
	meshLastBlock = `
		........
		........
		........
		...x...x
		........
		........
		........
		...x....`
)
