// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"math/rand/v2"
	"slices"
)

// choice is what is chosen on a node: the set, empty if none fits, and what preferences say of it,
// the greater the better.
type choice struct {
	set    Set
	values []int64
}

// chooser chooses on a node.
type chooser func(node int, free Set, size int) (choice, error)

// opener begins a decision, with what is free on the nodes. The chooser is asked for these only.
type opener func(free []Set) (chooser, error)

// always chooses without looking at the other nodes.
func always(c chooser) opener {
	return func([]Set) (chooser, error) { return c, nil }
}

// remembered asks once. The nodes are alike: what is chosen depends on nothing but what is free.
func remembered(c chooser) opener {
	type answer struct {
		choice
		known bool
	}
	known := map[int][]answer{}
	return always(func(node int, free Set, size int) (choice, error) {
		for len(known[size]) <= int(free) {
			known[size] = append(known[size], make([]answer, max(1, len(known[size])))...)
		}
		a := &known[size][free]
		if a.known {
			return a.choice, nil
		}
		chosen, err := c(node, free, size)
		if err == nil {
			*a = answer{chosen, true}
		}
		return chosen, err
	})
}

// firstNode places on the first node where something fits.
type firstNode struct{ open opener }

func (p firstNode) place(free []Set, size int) (int, Set, error) {
	choose, err := p.open(free)
	if err != nil {
		return -1, 0, err
	}
	for node := range free {
		c, err := choose(node, free[node], size)
		if err != nil || c.set != 0 {
			return node, c.set, err
		}
	}
	return -1, 0, nil
}

// randomNode places on any node where something fits, as kube-scheduler does where scores are equal.
type randomNode struct {
	open   opener
	source *rand.Rand
}

func (p randomNode) place(free []Set, size int) (int, Set, error) {
	return best(p.open, free, size, func(_, _ int, _, _ choice) int { return 0 }, p.source)
}

// fullestNode places on the node with the fewest free devices of those where something fits, the
// first of several.
type fullestNode struct{ open opener }

func (p fullestNode) place(free []Set, size int) (int, Set, error) {
	return best(p.open, free, size, func(node, chosen int, _, _ choice) int { return free[chosen].len() - free[node].len() }, nil)
}

// bestNode places on the node whose values are greatest, on any of several, or on the first if there
// is no source of chance.
type bestNode struct {
	open   opener
	source *rand.Rand
}

func (p bestNode) place(free []Set, size int) (int, Set, error) {
	return best(p.open, free, size, func(_, _ int, c, chosen choice) int { return slices.Compare(c.values, chosen.values) }, p.source)
}

// best goes over all nodes where something fits, and takes the best as compare has it, which is
// positive if the first one is better.
func best(open opener, free []Set, size int, compare func(node, chosen int, c, than choice) int, source *rand.Rand) (int, Set, error) {
	choose, err := open(free)
	if err != nil {
		return -1, 0, err
	}
	chosen, than, equal := -1, choice{}, 0
	for node := range free {
		c, err := choose(node, free[node], size)
		if err != nil {
			return -1, 0, err
		}
		if c.set == 0 {
			continue
		}
		order := 1
		if chosen >= 0 {
			order = compare(node, chosen, c, than)
		}
		switch {
		case order > 0:
			chosen, than, equal = node, c, 1
		case order == 0 && source != nil:
			// Each of those that are equal has the same chance.
			if equal++; source.IntN(equal) == 0 {
				chosen, than = node, c
			}
		}
	}
	return chosen, than.set, nil
}

// anySet chooses among all sets that would do.
func (m *Machine) anySet(source *rand.Rand) chooser {
	return func(_ int, free Set, size int) (choice, error) {
		fitting := m.fitting(free, size)
		if len(fitting) == 0 {
			return choice{}, nil
		}
		return choice{set: fitting[source.IntN(len(fitting))]}, nil
	}
}

// enumerated chooses the set with the greatest values by looking at all, the first of several.
func (m *Machine) enumerated(values func(free, set Set) []int64) chooser {
	return func(_ int, free Set, size int) (choice, error) {
		var best choice
		for _, set := range m.fitting(free, size) {
			if v := values(free, set); best.set == 0 || slices.Compare(v, best.values) > 0 {
				best = choice{set, v}
			}
		}
		return best, nil
	}
}
