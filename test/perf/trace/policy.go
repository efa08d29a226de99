// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/celset/celset/internal/testing/shape"
)

// choice is what is chosen on a node: the set, empty if none fits, and what preferences say of it,
// the greater the better.
type choice struct {
	set    shape.Set
	values []int64
}

// chooser chooses on a node with so much free.
type chooser func(free shape.Set, size int) (choice, error)

// policy says where a claim is placed: on the node with the greatest values of those where something
// fits, the first of several.
type policy struct {
	name string
	// anyNode takes any of several nodes, as kube-scheduler does where scores are equal.
	anyNode bool
	// chooses what is taken on a node. There is none where all devices are of one pool without nodes:
	// no choice of nodes and sets can place a claim that it can't.
	chooses func(*Machine) (chooser, error)
}

// policies are those that are compared on a machine.
func policies(m *Machine) []policy {
	first := func(m *Machine) (chooser, error) { return m.asked() }
	keepWhole := func(m *Machine) (chooser, error) { return m.asked(m.keepWhole()...) }
	all := []policy{{"today", true, first}, {"first-fit", false, first}}
	if m.gpus != nil {
		all = append(all, policy{"best-effort", false, func(m *Machine) (chooser, error) { return m.bestEffort, nil }})
	}
	return append(all, policy{"KeepWhole", false, keepWhole}, policy{"KeepWhole-any-node", true, keepWhole}, policy{"pool", false, nil})
}

// chooser is what the policy takes on a node. It asks once: what is chosen depends on nothing but what
// is free.
func (p policy) chooser(m *Machine) (chooser, error) {
	if p.chooses == nil {
		return nil, nil
	}
	asked, err := p.chooses(m)
	if err != nil {
		return nil, err
	}
	known := map[int]map[shape.Set]choice{}
	for size := range m.sets {
		known[size] = map[shape.Set]choice{}
	}
	return func(free shape.Set, size int) (choice, error) {
		if c, ok := known[size][free]; ok {
			return c, nil
		}
		c, err := asked(free, size)
		if err == nil {
			known[size][free] = c
		}
		return c, err
	}, nil
}

// cluster is nodes of one kind, and who chooses among them.
type cluster struct {
	machine *Machine
	devices int
	free    []shape.Set
	choose  chooser
	// chance decides between nodes that are as good, nil: the first is taken.
	chance *rand.Rand
}

func newCluster(m *Machine, nodes int, choose chooser) *cluster {
	return &cluster{machine: m, devices: nodes * m.all().Len(), free: slices.Repeat([]shape.Set{m.all()}, nodes), choose: choose}
}

// placement is what a claim got.
type placement struct {
	node int
	set  shape.Set
}

// place takes devices, if it can.
func (c *cluster) place(size int) (placement, bool, error) {
	if c.choose == nil {
		return placement{}, true, nil
	}
	chosen, best, equal := -1, choice{}, 0
	for node, free := range c.free {
		got, err := c.choose(free, size)
		if err != nil {
			return placement{}, false, err
		}
		if got.set == 0 {
			continue
		}
		order := 1
		if chosen >= 0 {
			order = slices.Compare(got.values, best.values)
		}
		switch {
		case order > 0:
			chosen, best, equal = node, got, 1
		case order == 0 && c.chance != nil:
			// Each of those that are equal has the same chance.
			if equal++; c.chance.IntN(equal) == 0 {
				chosen, best = node, got
			}
		}
	}
	if chosen < 0 {
		return placement{}, false, nil
	}
	// Nobody is trusted.
	if free := c.free[chosen]; free&best.set != best.set || !slices.Contains(c.machine.sets[size], best.set) {
		return placement{}, false, fmt.Errorf("%s, %d devices: of %b on node %d %b was chosen", c.machine.Name, size, free, chosen, best.set)
	}
	c.free[chosen] &^= best.set
	return placement{chosen, best.set}, true, nil
}

func (c *cluster) release(p placement) {
	if c.choose != nil {
		c.free[p.node] |= p.set
	}
}
