// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nearest finds the name that a misspelt one is meant for.
package nearest

import (
	"fmt"
	"iter"
	"strings"
)

// Names are written by tenants, so that what is compared is bounded: longer names, and more
// candidates, are not looked at.
const (
	maxLength     = 128
	maxCandidates = 2000
)

// Name returns the candidate that differs from the name in the fewest characters: in one, or in two of
// eight and more. It is empty if there is none. Of several the first one is taken.
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

// DidYouMean asks so, at the end of a message, or is empty if there is no such name. The prefix belongs to all names.
func DidYouMean(prefix, name string, candidates iter.Seq[string]) string {
	near := Name(name, candidates)
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", prefix+near)
}

// distance is how many characters are inserted, removed, replaced, or exchanged with the next one.
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
