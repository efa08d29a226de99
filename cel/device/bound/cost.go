// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/costbound"
	"github.com/celset/celset/cel/tree"
)

// An evaluation that crosses the limit of its cost fails, whatever the expression says of
// the set. Bounds know nothing of costs, so they hold only where no evaluation can come to
// that. The same is so of what may abort ([guard]). But an evaluation goes through conjuncts from the
// first to the last, and ends with the first that is false: what stands behind it is never met.

func (a *Analysis) isWithin(sizes device.Sizes) bool {
	return costbound.Of(a.expression, a.size, sizes).Within(a.expression.Limits())
}

// Affordable tells whether no evaluation on some of the devices crosses the limit for one.
// Bounds of the whole expression may only be asked for if that is so.
func (a *Analysis) Affordable(devices []*device.Device) bool {
	return a.usable && (a.within || a.isWithin(device.SizesOf(devices)))
}

// Leading returns the analysis if it is affordable for some of the devices, otherwise one of so many
// of the first conjuncts that it is: a set for which one of them is false is refused before others are
// evaluated. The rest is open. nil if nothing is understood of them.
func (a *Analysis) Leading(devices []*device.Device) *Analysis {
	if a.Affordable(devices) {
		if a.Understood() {
			return a
		}
		return nil
	}
	if a.goal != nil {
		return nil
	}
	conjuncts := tree.Conjuncts(a.expression.AST().Expr())
	affordable := costbound.Leading(a.expression, a.size, device.SizesOf(devices), a.expression.Limits())
	reader := newAnalyzer(a.expression, a.size)
	reader.ascending = a.ascending
	leading := reader.analyze(conjuncts[:min(affordable, len(conjuncts)-1)]...)
	if !leading.Understood() || len(leading.conjuncts) == 0 {
		return nil
	}
	leading.conjuncts = append(leading.conjuncts, open{})
	leading.provable, leading.within = false, true
	return leading
}
