// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import "github.com/celset/celset/cel/device"

// setVerdict is the verdict on a set.
type setVerdict struct {
	satisfied bool
	// cost of the evaluation, which is charged to every search that needs it: whether a
	// search stays within its budget does not depend on what others did before.
	cost uint64
}

// verdict evaluates the expression for the complete set, unless that was done before.
func (c *celConstraint) verdict() (bool, error) {
	s := c.search
	if s.allocator.unbounded {
		v, err := c.evaluateSet()
		return v.satisfied, err
	}
	v, known, err := find(s.ctx, s.allocator.cache.verdicts.At(c.verdictKey()), c.evaluateSet)
	if known {
		c.hits++
		err = s.work.cost.Charge(v.cost)
	}
	return v.satisfied, err
}

func (c *celConstraint) evaluateSet() (setVerdict, error) {
	c.evaluations++
	before := c.search.work.cost.Spent()
	satisfied, err := c.expression.Satisfied(c.search.ctx, c.memberValues(), c.search.work.cost)
	return setVerdict{satisfied, c.search.work.cost.Spent() - before}, err
}

// memberValues are the devices of the set as an expression sees them, until it is called again.
func (c *celConstraint) memberValues() []*device.Device {
	c.values = c.values[:0]
	for _, member := range c.members {
		c.values = append(c.values, c.search.view().Values[member.Position])
	}
	return c.values
}
