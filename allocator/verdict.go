// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"github.com/celset/celset/allocator/internal/verdict"
	"github.com/celset/celset/cel/device"
)

// verdict evaluates the expression for the complete set, unless that was done before. What it
// cost is charged either way: whether a search stays within its budget does not depend on what
// others did before.
func (c *celConstraint) verdict() (bool, error) {
	s := c.search
	if s.allocator.unbounded {
		v, err := c.EvaluateSet()
		return v.Satisfied, err
	}
	if c.known == nil {
		c.known = s.allocator.cache.verdictsOf(s.view(), c.definition)
	}
	c.positions = c.positions[:0]
	for _, member := range c.members {
		c.positions = append(c.positions, member.Position)
	}
	v, known, err := c.known.Find(s.ctx, c.positions, c)
	if known {
		c.hits++
		err = s.work.cost.Charge(v.Cost)
	}
	return v.Satisfied, interrupted(s.ctx, err)
}

// EvaluateSet evaluates the expression for the complete set.
func (c *celConstraint) EvaluateSet() (verdict.Verdict, error) {
	c.evaluations++
	before := c.search.work.cost.Spent()
	satisfied, err := c.expression.Satisfied(c.search.ctx, c.memberValues(), c.search.work.cost)
	return verdict.Verdict{Satisfied: satisfied, Cost: c.search.work.cost.Spent() - before}, err
}

// memberValues are the devices of the set as an expression sees them, until it is called again.
func (c *celConstraint) memberValues() []*device.Device {
	values := c.search.view().Values
	c.values = c.values[:0]
	for _, member := range c.members {
		c.values = append(c.values, values[member.Position])
	}
	return c.values
}
