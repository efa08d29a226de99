// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package library provides functions over sets that CEL lacks. Expressions over "devices" can use them in addition to the
// functions of Kubernetes. A scheduler without this package rejects such an expression.
//
// Four functions take a relation: two names, and a condition on the named elements. The condition is evaluated for every
// ordered pair of elements. Two elements are joined if the condition holds in either order, so a driver may list a link at
// either end. If the condition fails for any pair, the function fails.
//
// # Connected
//
// Reports whether every element can be reached from every other element over joined elements. An empty list and a single element
// are connected.
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
// Reports whether each element is joined to every other element.
//
//	<list>.clique(<name>, <name>, <bool>) -> <bool>
//
// Examples:
//
//	[2, 4, 6].clique(a, b, a < b && (a + b) % 2 == 0) // true
//	[2, 4, 5].clique(a, b, (a + b) % 2 == 0) // false
//
// KEP-5254 has no such function. Its equivalent is
//
//	devices.all(a, devices.all(b, a == b || joined(a, b) || joined(b, a)))
//
// # Ring
//
// Reports whether the elements can be put into a circle: each is joined to the next, and the last to the first. Two joined
// elements are a ring, and so are a single element and an empty list. Any such circle counts, and further links are allowed.
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
// Reports whether the elements can be put into a row so that each is joined to the next.
//
//	<list>.path(<name>, <name>, <bool>) -> <bool>
//
// Examples:
//
//	[2, 0, 1].path(a, b, b == a + 1) // true
//	[0, 1, 2, 3].path(a, b, a == 0) // false
//
// No known algorithm finds rings and paths fast for every relation. So the search ends after 4,096 steps and then returns
// false. A step visits one partial ring. Lists of up to nine elements never reach the limit. Larger lists reach it only if
// there are neither few nor many links. A list of more than 63 elements is an error.
//
// # Box
//
// Reports whether the bounding box of the elements has the given sides, in any order: a block of 2x4 may also be 4x2. The
// coordinates of an element are a list of ints, one int per side. A side counts positions: it is the greatest coordinate minus
// the smallest one, plus one. An empty list has no box. The optional list of circles has one entry per coordinate. An entry
// other than zero is the length of a circle: the coordinate is taken modulo this length, and the side is the length of the
// shortest arc with all elements.
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
// The box is full if it has as many elements as positions and no two elements share a position. KEP-5254 has no such function.
// Without orders of the sides and without circles, the equivalent is
//
//	devices.map(d, x(d)).max() - devices.map(d, x(d)).min() == 1 && ...
//
// # Paired
//
// Reports whether the elements of two lists can be paired: each element gets its own partner in the other list, and is joined
// to this partner. If one list is longer, each element of the shorter list gets the same number of partners, for example two
// GPUs per NIC. If the longer length is not a multiple of the shorter one, the result is false. Two empty lists are paired. The
// first name is an element of the list before the dot, and the second name an element of the other list.
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
// # Segments
//
// Reports whether the elements can be divided into segments of a size, so that all elements of a segment have the same key. If the
// size does not divide the number of elements, exactly one segment is smaller: it has the remaining elements. Several segments may
// have the same key. The order of the elements does not matter. An empty list has no segments, and the function is true. A size
// below one is an error. A key is a bool, a number, a string, bytes, or a list of them. Keys of other types are errors.
//
//	<list>.segments(<int>, <name>, <key>) -> <bool>
//
// Examples:
//
//	[10, 20, 11, 21].segments(2, n, n / 10) // true
//	[10, 11, 12, 13].segments(2, n, n / 10) // true
//	[10, 20, 21, 22].segments(2, n, n / 10) // false
//	[10, 11, 20].segments(2, n, n / 10) // true
//	[10, 20, 30].segments(2, n, n / 10) // false
//	[10, 11, 12, 20, 21].segments(3, n, n / 10) // true
//	[10, 11, 12].segments(0, n, n) // error
//
// # SameOrIncludes
//
// Compares two values. Each is a single value or a list, as attributes of devices may be since Kubernetes 1.36. A single value
// counts as a list with one element. The result is true if both lists have a common element, as in matchAttribute. The order of
// the two values does not matter.
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
// # Adding a function
//
// This package implements the meaning of a function. Its cost is in the loads of package meter and in package costbound. A
// condition in package bound evaluates the function on partial sets. Without the condition, expressions with the function are
// correct but slow.
package library
