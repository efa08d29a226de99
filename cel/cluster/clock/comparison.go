// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celset/celset/cel/meter"
)

// order is what a comparison says of two values whose difference is negative, zero or positive.
type order struct{ below, equal, above bool }

var orders = map[string]order{
	operators.Less:          {below: true},
	operators.LessEquals:    {below: true, equal: true},
	operators.Greater:       {above: true},
	operators.GreaterEquals: {above: true, equal: true},
	operators.Equals:        {equal: true},
	operators.NotEquals:     {below: true, above: true},
}

// comparison follows the difference of two values.
func (f *follower) comparison(part ast.Expr, function string, operands []ast.Expr) rates {
	first, second := f.of(operands[0]), f.of(operands[1])
	difference := f.limited(first.plus(second.negated()))
	if !first.moves() && !second.moves() {
		return fixed
	}
	by := orders[function]
	f.watch(part, func(clock *Reading, of meter.Watched) {
		a, moves := exactOf(of.First)
		b, both := exactOf(of.Second)
		if !moves || !both || of.First.Type() != of.Second.Type() {
			if mayContain(of.First) || mayContain(of.Second) {
				clock.after(1)
			}
			return
		}
		for _, rate := range difference {
			clock.after(by.changes(a.minus(b), rate))
		}
	})
	return fixed
}

// changes is after how many ticks the answer is another, if the difference moves at a rate; 0
// is never.
func (o order) changes(difference exact, rate int64) int64 {
	switch {
	case rate == 0:
		return 0
	case rate < 0:
		difference, rate, o = difference.negated(), -rate, order{o.above, o.equal, o.below}
	}
	// It grows.
	switch difference.sign() {
	case 1:
		return 0
	case 0:
		if o.equal != o.above {
			return 1
		}
		return 0
	}
	step := rate * tickSeconds
	ticks := ceilDiv(-difference.seconds, step)
	then := exact{difference.seconds + ticks*step, difference.nanos}
	switch {
	case then.sign() > 0 && o.below != o.above:
		return ticks
	case then.sign() > 0:
		return 0
	case o.below != o.equal:
		return ticks
	case o.below != o.above:
		return ticks + 1
	default:
		return 0
	}
}

// mayContain tells whether a value may have others in it, that move.
func mayContain(value ref.Val) bool {
	switch value.(type) {
	case types.String, types.Bytes:
		return false
	case traits.Sizer, *types.Optional:
		return true
	default:
		return false
	}
}
