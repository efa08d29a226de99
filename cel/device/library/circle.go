// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package library

import "math/bits"

const (
	// MaxCircle is the maximum number of elements of a ring or a path.
	MaxCircle = 63
	// MaxSteps is the maximum number of partial ways that a search visits. A ring of nine elements, or a path of eight and the
	// added element, needs at most 9 * 2^8 steps.
	MaxSteps = 1 << 12
)

// Ring reports whether the elements, at most [MaxCircle], form a circle: each is joined to the next, and the last to the first.
// It returns false if the search exceeds [MaxSteps].
func (g Graph) Ring() bool {
	found, _ := g.FindRing()
	return found
}

// Path reports whether the elements, at most [MaxCircle], form a row: each is joined to the next. It returns false if the search
// exceeds [MaxSteps].
func (g Graph) Path() bool {
	found, _ := g.FindPath()
	return found
}

// FindRing is like Ring. ended is false if the search gave up after MaxSteps.
func (g Graph) FindRing() (found, ended bool) {
	switch g.Len() {
	case 0, 1:
		return true, true
	case 2:
		return g.rows[0].Has(1), true
	}
	return newCircle(g, 0).find()
}

// FindPath is like Path. ended is false if the search gave up after MaxSteps.
func (g Graph) FindPath() (found, ended bool) {
	if g.Len() < 2 {
		return true, true
	}
	// The elements form a path if and only if they form a ring together with one additional element that is joined to all of
	// them.
	return newCircle(g, 1).find()
}

// circle is a backtracking search for a ring. It visits one element after another and returns to the first:
//
// 1. Start at the element with the fewest neighbours. For a path, start at the added element.
// 2. Reject a partial way that is in dead, or that mayClose rules out.
// 3. Extend the way by each unvisited neighbour of its last element, in the order of choose.
// 4. If no extension returns to the first element, add the way to dead.
//
// find repeats the search with different orders, up to [MaxSteps] steps in total.
type circle struct {
	// rows[i] has a bit for each element that element i is joined to.
	rows  []uint64
	all   uint64
	start int
	// steps counts the steps of all attempts. The current attempt ends when steps exceeds limit. choose selects the next
	// element from a set of unvisited neighbours.
	steps, limit int
	choose       func(c *circle, of, visited uint64) int
	// dead has the partial ways that can't be completed. A way is the set of its elements and its last element.
	dead map[way]struct{}
}

type way struct {
	visited uint64
	last    int
}

// newCircle returns a search on the graph with a number of added elements, which are joined to all others. The search starts at
// an added element if there is one, and otherwise at the element with the fewest neighbours.
func newCircle(g Graph, added int) *circle {
	n := g.Len() + added
	c := &circle{rows: make([]uint64, n), all: 1<<n - 1, dead: make(map[way]struct{})}
	for i := range c.rows {
		if i >= g.Len() {
			c.rows[i], c.start = c.all&^(1<<i), i
			continue
		}
		for to := range g.rows[i].All() {
			c.rows[i] |= 1 << to
		}
		c.rows[i] |= c.all &^ (1<<g.Len() - 1)
	}
	for i := range g.Len() {
		if added == 0 && bits.OnesCount64(c.rows[i]) < bits.OnesCount64(c.rows[c.start]) {
			c.start = i
		}
	}
	return c
}

// attempts lists the orders of elements that find tries, each with its limit of total steps. A relation that is hard for one
// order is often easy for another. Attempts share the dead ends.
var attempts = []struct {
	choose func(c *circle, of, visited uint64) int
	limit  int
}{
	{(*circle).leastChoice, MaxSteps / 16}, {(*circle).first, MaxSteps / 8}, {(*circle).last, 3 * MaxSteps / 16},
	{(*circle).leastChoiceLast, MaxSteps / 4}, {(*circle).leastChoice, MaxSteps},
}

// find searches for a way that visits all elements and returns to the first.
func (c *circle) find() (found, ended bool) {
	for _, attempt := range attempts {
		c.choose, c.limit = attempt.choose, attempt.limit
		if c.from(way{1 << c.start, c.start}) {
			return true, true
		}
		if c.steps <= c.limit {
			return false, true
		}
	}
	return false, false
}

func (c *circle) from(w way) bool {
	if w.visited == c.all {
		return c.rows[w.last]&(1<<c.start) != 0
	}
	if _, dead := c.dead[w]; dead || !c.mayClose(w) {
		return false
	}
	if c.steps++; c.steps > c.limit {
		return false
	}
	for next := c.rows[w.last] &^ w.visited; next != 0; {
		i := c.choose(c, next, w.visited)
		if c.from(way{w.visited | 1<<i, i}) {
			return true
		}
		next &^= 1 << i
	}
	if c.steps <= c.limit {
		c.dead[w] = struct{}{}
	}
	return false
}

func (c *circle) first(of, _ uint64) int { return bits.TrailingZeros64(of) }

func (c *circle) last(of, _ uint64) int { return bits.Len64(of) - 1 }

// leastChoice returns the element with the fewest unvisited neighbours, because this element will be the hardest to reach later
// (Warnsdorff's rule).
func (c *circle) leastChoice(of, visited uint64) int {
	best, fewest := 0, len(c.rows)+1
	for ; of != 0; of &= of - 1 {
		i := bits.TrailingZeros64(of)
		if count := bits.OnesCount64(c.rows[i] &^ visited); count < fewest {
			best, fewest = i, count
		}
	}
	return best
}

// leastChoiceLast returns the last of the elements with the fewest unvisited neighbours.
func (c *circle) leastChoiceLast(of, visited uint64) int {
	best, fewest := 0, len(c.rows)+1
	for ; of != 0; of &= of - 1 {
		i := bits.TrailingZeros64(of)
		if count := bits.OnesCount64(c.rows[i] &^ visited); count <= fewest {
			best, fewest = i, count
		}
	}
	return best
}

// mayClose reports whether each unvisited element can still be reached and can still have two neighbours in the ring.
func (c *circle) mayClose(w way) bool {
	left := c.all &^ w.visited
	ends := uint64(1)<<w.last | 1<<c.start
	for rest := left; rest != 0; rest &= rest - 1 {
		between := c.rows[bits.TrailingZeros64(rest)] & (left | ends)
		if bits.OnesCount64(between) < 2 {
			return false
		}
	}
	reached := uint64(0)
	for next := c.rows[w.last] & left; next != 0; {
		i := bits.TrailingZeros64(next)
		reached |= 1 << i
		next = (next | c.rows[i]&left) &^ reached
	}
	return reached == left
}
