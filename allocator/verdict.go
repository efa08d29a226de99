// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"encoding/binary"
	"sync"

	"github.com/celset/celset/cel/device"
)

// verdictKey is everything that the verdict of an expression on a set depends on.
type verdictKey struct {
	hardware   *hardware
	expression *device.Expression
	// devices are the positions of the members in the order of the set, four bytes each.
	devices string
}

// setVerdict is the verdict on a set, once it is known. Whoever needs it while it is
// being found out waits.
type setVerdict struct {
	mutex     sync.Mutex
	known     bool
	satisfied bool
	// cost of the evaluation, which is charged to every search that needs it: whether a
	// search stays within its budget does not depend on what others did before.
	cost uint64
}

// verdict evaluates the expression for the complete set, unless that was done before.
func (c *celConstraint) verdict() (bool, error) {
	s := c.search
	if s.unbounded {
		c.evaluations++
		return c.expression.Satisfied(s.ctx, c.values, s.budget)
	}
	v := get(s.cache, s.cache.verdicts, c.verdictKey(), func() *setVerdict { return &setVerdict{} })
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.known {
		c.hits++
		return v.satisfied, s.budget.Charge(v.cost)
	}
	c.evaluations++
	before := s.budget.Spent()
	satisfied, err := c.expression.Satisfied(s.ctx, c.values, s.budget)
	if err == nil {
		v.known, v.satisfied, v.cost = true, satisfied, s.budget.Spent()-before
	}
	return satisfied, err
}

func (c *celConstraint) verdictKey() verdictKey {
	devices := make([]byte, 0, 4*len(c.members))
	for _, member := range c.members {
		devices = binary.BigEndian.AppendUint32(devices, uint32(member.position))
	}
	return verdictKey{c.search.hardware, c.expression, string(devices)}
}
