// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"

	"github.com/celset/celset/cel/device"
)

// celConstraint is the CEL device constraint of KEP-5254: it collects devices
// until the set is complete and then asks the expression. Before that it says
// nothing, because a verdict on a part of a set tells nothing about the whole.
//
// The set is complete with the last device of the last covered request. The
// search takes requests in order and devices in ascending order, so the devices
// stand in the order that an expression is promised.
type celConstraint struct {
	*definition
	search *search
	claim  *resourceapi.ResourceClaim
	// covered are the requests whose devices make up the set.
	covered []*request
	// wanted is the size of a complete set.
	wanted int
	// values and members are the devices of the set so far.
	values  []*device.Device
	members []*candidate
	// evaluations and rejected count the complete sets that were evaluated, and
	// those of them for which the expression was false.
	evaluations, rejected int64
}

func (s *search) newCELConstraint(claim *resourceapi.ResourceClaim, d *definition, covered []*request) *celConstraint {
	c := &celConstraint{definition: d, search: s, claim: claim, covered: covered}
	for _, r := range covered {
		c.wanted += r.count
	}
	s.celConstraints = append(s.celConstraints, c)
	return c
}

func (c *celConstraint) add(added *candidate) (bool, error) {
	c.members = append(c.members, added)
	c.values = append(c.values, added.value)
	if len(c.values) < c.wanted {
		return true, nil
	}
	c.evaluations++
	satisfied, err := c.expression.Satisfied(c.search.ctx, c.values, c.search.budget)
	if err == nil && satisfied {
		return true, nil
	}
	if err != nil {
		err = c.evaluationError(err)
	} else {
		c.rejected++
	}
	c.remove(added)
	return false, err
}

func (c *celConstraint) remove(*candidate) {
	c.members = c.members[:len(c.members)-1]
	c.values = c.values[:len(c.values)-1]
}

// rejection is nil: that the set of all devices does not satisfy the expression
// on this node says nothing about other nodes or other choices.
func (c *celConstraint) rejection(*request, *candidate) error { return nil }

// evaluationError must be called while the set is still there.
func (c *celConstraint) evaluationError(err error) error {
	ids := make([]string, len(c.members))
	for i, member := range c.members {
		ids[i] = member.id.String()
	}
	return fmt.Errorf("claim %s, constraint %s, node %s, devices [%s]: %w",
		klog.KObj(c.claim), c.name, c.search.node.Name, strings.Join(ids, ", "), err)
}
