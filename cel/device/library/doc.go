// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package library has the functions over sets that CEL lacks. An expression over "devices" has
// them beside those of Kubernetes; a scheduler that does not know them refuses the expression.
//
// Four of them take a relation: two names, and what must be true of the two elements for them to be
// joined. The relation is asked of every ordered pair, and two elements are joined if it holds for
// either order: it does not matter at which end of a link a driver lists it. An error for any pair
// is the error of the function.
//
// # Connected
//
// Reports whether one can come from each element to each other one over joined ones. No element and a
// single one are connected.
//
//	<list>.connected(<name>, <name>, <bool>) -> <bool>
//
// Examples:
//
//	[1, 2, 3].connected(a, b, b == a + 1) // true
//	[1, 2, 4].connected(a, b, b == a + 1) // false
//	[4].connected(a, b, false) // true
//	[1, 2, 3].connected(a, b, 6 / (a - 2) > 0) // error
//
// # Clique
//
// Reports whether each element is joined to each other one.
//
//	<list>.clique(<name>, <name>, <bool>) -> <bool>
//
// Examples:
//
//	[2, 4, 6].clique(a, b, a < b && (a + b) % 2 == 0) // true
//	[2, 4, 5].clique(a, b, (a + b) % 2 == 0) // false
//
// KEP-5254 has no such function. Without it one writes
//
//	devices.all(a, devices.all(b, a == b || joined(a, b) || joined(b, a)))
//
// # Ring
//
// Reports whether the elements can be put into a circle in which each is joined to the next, and
// the last to the first. Two elements that are joined are a ring, and so are a single one and none.
// Which circle does not matter, and there may be more links than those of the circle.
//
//	<list>.ring(<name>, <name>, <bool>) -> <bool>
//
// Examples:
//
//	[0, 1, 2, 3].ring(a, b, b == (a + 1) % 4) // true
//	[0, 1, 2].ring(a, b, b == (a + 1) % 4) // false
//	[0, 1].ring(a, b, b == (a + 1) % 4) // true
//
// # Path
//
// Reports whether the elements can be put into a row in which each is joined to the next.
//
//	<list>.path(<name>, <name>, <bool>) -> <bool>
//
// Examples:
//
//	[2, 0, 1].path(a, b, b == a + 1) // true
//	[0, 1, 2, 3].path(a, b, a == 0) // false
//
// Nobody knows a way to find rings and paths that is fast for every relation. The search ends after
// 4,096 steps with the answer false; a step is a way over some of the elements that may be a part of
// the ring. With up to nine elements it never comes to that, and with more of them it does only where
// links are neither few nor many. Lists of more than 63 elements are an error.
//
// # Box
//
// Reports whether the bounding box of the elements has the given sides, in any order: a block of 2x4
// may lie or stand. For each element the coordinates are a list of ints, and there are as many
// sides as coordinates. A side counts places: it is the greatest coordinate less the smallest one,
// plus one. No element has no box. With a third list a coordinate may go around: where it is not
// zero, so many places form a circle, the coordinate is taken modulo it, and the side is the
// shortest arc that has all elements in it.
//
//	<list>.box(<name>, <list of int>, <sides>) -> <bool>
//	<list>.box(<name>, <list of int>, <sides>, <circles>) -> <bool>
//
// Examples:
//
//	[0, 1, 4, 5].box(n, [n / 4, n % 4], [2, 2]) // true
//	[0, 1, 2, 3].box(n, [n / 4, n % 4], [4, 1]) // true
//	[0, 1, 6].box(n, [n / 4, n % 4], [2, 2]) // false
//	[0, 3].box(n, [n], [2]) // false
//	[0, 3].box(n, [n], [2], [4]) // true
//	[0, 3].box(n, [n], [2, 2]) // error
//
// The box is full if there are as many elements as places, and no two at one place. KEP-5254 has
// no such function; without orientation and circles one writes
//
//	devices.map(d, x(d)).max() - devices.map(d, x(d)).min() == 1 && ...
//
// # Paired
//
// Reports whether the elements of two lists can be paired: each one with a partner in the other list
// that it is joined to, and that no other has. If one list is longer, each element of the shorter one
// gets the same number of partners, two GPUs a NIC for instance; if it is not a multiple, the answer
// is false. Two lists without elements are paired. The first name is an element of the list before
// the dot, the second of the other.
//
//	<list>.paired(<list>, <name>, <name>, <bool>) -> <bool>
//
// Examples:
//
//	[1, 2].paired([10, 20], a, b, b == 10 * a) // true
//	[1, 2].paired([10, 11], a, b, b == 10 * a) // false
//	[1, 2, 3, 4].paired([1, 2], a, b, (a + 1) / 2 == b) // true
//	[1, 2, 3].paired([1, 2], a, b, true) // false
//
// # SameOrIncludes
//
// Compares what may be one value or a list of several, as attributes of devices may since Kubernetes
// 1.36: a value counts as a list of one, and the two are the same or include each other if they have
// an element in common. It is what matchAttribute means by a match. The order of the two does not
// matter.
//
//	<value>.sameOrIncludes(<value>) -> <bool>
//
// Examples:
//
//	dyn(1).sameOrIncludes(1) // true
//	dyn([1, 2]).sameOrIncludes(2) // true
//	dyn('a').sameOrIncludes(['b', 'a']) // true
//	dyn([1, 2]).sameOrIncludes([3, 2]) // true
//	dyn([]).sameOrIncludes([]) // false
//
// # To add a function
//
// What it says of values is here; what it costs is in the loads of package meter and in package
// costbound; what package bound knows of partial sets is a condition there. Without the last an
// expression with it is right but slow.
package library
