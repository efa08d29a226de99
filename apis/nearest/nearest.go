// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nearest finds the name that the author of a misspelt name probably meant.
package nearest

import (
	"fmt"
	"iter"
	"strings"
)

// Tenants write the names, so the work is bounded. Longer names and further candidates are ignored.
const (
	maxLength     = 128
	maxCandidates = 2000
)

// Name returns the candidate that differs from the name in the fewest characters. If there are several, it returns the first. A
// difference of one character is allowed, or of two if the name has at least eight characters. If no candidate is that similar,
// Name returns "".
func Name(name string, candidates iter.Seq[string]) string {
	best, least, seen := "", max(1, min(2, len(name)/4))+1, 0
	for candidate := range candidates {
		if seen++; seen > maxCandidates {
			break
		}
		if candidate == name || len(name) > maxLength || len(candidate) > maxLength {
			continue
		}
		if d := distance(strings.ToLower(name), strings.ToLower(candidate)); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// DidYouMean returns the question "did you mean", which callers append to a message, or "" if no candidate is similar. prefix
// is put before the suggested name.
func DidYouMean(prefix, name string, candidates iter.Seq[string]) string {
	near := Name(name, candidates)
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", prefix+near)
}

// distance returns the smallest number of edits that turn a into b. An edit inserts, removes or replaces a character, or
// exchanges it with the next one.
func distance(a, b string) int {
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j+1]+1, next[j]+1, row[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
