// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/costbound"
)

// An evaluation that crosses the limit of its cost fails, whatever the expression says of
// the set. Bounds know nothing of costs, so they hold only where no evaluation can come to
// that.

// costs tells whether the evaluation of an expression may fail because of what it costs.
type costs struct {
	expression *device.Expression
	size       int
	// within: no evaluation on devices as the API allows them crosses the limit. Most
	// expressions are far from it.
	within bool
}

func newCosts(expression *device.Expression, size int) costs {
	c := costs{expression: expression, size: size}
	c.within = c.isWithin(device.LargestSizes())
	return c
}

func (c costs) isWithin(sizes device.Sizes) bool {
	return costbound.Of(c.expression, c.size, sizes).Within(c.expression.Limits())
}

// Affordable tells whether no evaluation on some of the devices crosses the limit for one.
// Bounds may only be asked for if that is so.
func (a *Analysis) Affordable(devices []*device.Device) bool {
	return a.usable && (a.costs.within || a.costs.isWithin(device.SizesOf(devices)))
}
