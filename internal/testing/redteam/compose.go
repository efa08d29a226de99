// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package redteam

import (
	"fmt"
	"strings"
)

// times repeats a text.
func times(n int, text string) string { return strings.Repeat(text, n) }

// nested puts what is between into n pairs of left and right.
func nested(n int, left, between, right string) string {
	return times(n, left) + between + times(n, right)
}

// doubled binds v0 to seed, v1 to what double makes of v0, and so on n times; body gets
// the name of the last one.
func doubled(n int, seed string, double func(v string) string, body func(v string) string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "cel.bind(v0, %s, ", seed)
	for i := range n {
		fmt.Fprintf(&text, "cel.bind(v%d, %s, ", i+1, double(fmt.Sprintf("v%d", i)))
	}
	return text.String() + body(fmt.Sprintf("v%d", n)) + times(n+1, ")")
}

// sum doubles lists and texts.
func sum(v string) string { return v + " + " + v }

// with makes a body of a text in which X stands for a variable.
func with(text string) func(string) string {
	return func(v string) string { return strings.ReplaceAll(text, "X", v) }
}

// textOf is an expression for a text of 2 to the power of n times ten letters, which
// costs little to make.
func textOf(n int, body string) string {
	return doubled(n, "'aaaaaaaaaa'", sum, with(body))
}

// nestedLoops goes n times through a list of ten, one inside the other, and evaluates
// body at the innermost place; it never ends early. The variables are x0, x1 and so on.
func nestedLoops(n int, body string) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "[1,2,3,4,5,6,7,8,9,10].all(x%d, ", i)
	}
	return text.String() + body + times(n, ")")
}

// joined repeats a text n times with a separator.
func joined(n int, text, separator string) string {
	return strings.TrimSuffix(times(n, text+separator), separator)
}

// numbered joins what of makes of 0 to n-1.
func numbered(n int, separator string, of func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = of(i)
	}
	return strings.Join(parts, separator)
}
