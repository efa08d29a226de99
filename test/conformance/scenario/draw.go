// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import "pgregory.net/rapid"

// The generators of rapid for numbers prefer small ones, so odds are built from
// coins, which are fair. All of them shrink to "no".

// maybe is true in one of two draws.
func (g *generator) maybe() bool { return rapid.Bool().Draw(g.T, "") }

// oneIn2To is true in one of 2^bits draws.
func (g *generator) oneIn2To(bits int) bool {
	for range bits {
		if !g.maybe() {
			return false
		}
	}
	return true
}

// fairly draws a number below 2^bits, all as likely.
func (g *generator) fairly(bits int) int {
	result := 0
	for range bits {
		result *= 2
		if g.maybe() {
			result++
		}
	}
	return result
}

// sometimes is true in one of 4 draws.
func (g *generator) sometimes() bool { return g.oneIn2To(2) }

// rarely is true in one of 16 draws.
func (g *generator) rarely() bool { return g.oneIn2To(4) }

// fault is true in one of 256 draws, and only if the profile allows faults.
func (g *generator) fault() bool { return g.Faults && g.oneIn2To(8) }

// between draws a number, both ends included.
func (g *generator) between(low, high int) int {
	return rapid.IntRange(low, max(low, high)).Draw(g.T, "")
}

// pick draws one of the items. The first ones are a little more likely, and the
// first is what shrinking ends with.
func pick[T any](g *generator, items ...T) T {
	return rapid.SampledFrom(items).Draw(g.T, "")
}

// some draws a part of the items, in their order, not empty unless there are no
// items.
func some[T any](g *generator, items []T) []T {
	var result []T
	for _, item := range items {
		if g.maybe() {
			result = append(result, item)
		}
	}
	if len(result) == 0 && len(items) > 0 {
		result = append(result, items[0])
	}
	return result
}
