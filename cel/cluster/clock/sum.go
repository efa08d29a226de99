// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"math"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/meter"
)

// sum follows what is added or subtracted. Of two lists it has what both have.
func (f *follower) sum(part ast.Expr, function string, operands []ast.Expr) rates {
	first, second := f.of(operands[0]), fixed
	if len(operands) > 1 {
		second = f.of(operands[1])
	}
	if !first.moves() && !second.moves() {
		return fixed
	}
	moved := first.negated()
	switch function {
	case operators.Add:
		moved = first.plus(second)
	case operators.Subtract:
		moved = first.plus(second.negated())
	}
	result := moved
	switch f.checked.GetType(part.ID()).Kind() {
	case types.TimestampKind, types.DurationKind:
	case types.ListKind:
		return f.limited(first.or(second))
	default:
		result = moved.or(first).or(second)
	}
	result = f.limited(result)
	f.watch(part, func(clock *Reading, of meter.Watched) {
		value, within, ok := added(function, of)
		if !ok {
			return
		}
		for _, rate := range moved {
			clock.after(within.left(value, rate))
		}
	})
	return result
}

// room is what values there are, in seconds: beyond its ends adding fails, and coming back from
// there it does not any more.
type room struct{ first, last int64 }

var (
	timestamps = room{firstSecond, lastSecond}
	durations  = room{math.MinInt64 / nanoseconds, math.MaxInt64 / nanoseconds}
)

// added is the exact sum or difference, also where CEL has none.
func added(function string, of meter.Watched) (value exact, within room, ok bool) {
	first, ok := exactOf(of.First)
	if !ok {
		return exact{}, room{}, false
	}
	_, isTimestamp := of.First.(types.Timestamp)
	if function == operators.Negate {
		return first.negated(), durations, true
	}
	second, ok := exactOf(of.Second)
	if !ok {
		return exact{}, room{}, false
	}
	_, subtractsTimestamp := of.Second.(types.Timestamp)
	within = durations
	if isTimestamp != subtractsTimestamp {
		within = timestamps
	}
	if function == operators.Subtract {
		return first.minus(second), within, true
	}
	return first.plus(second), within, true
}

// edge is how far from an end of the room a value is taken for one that may be on either side.
const edge = 3

// left is after how many ticks a value that moves at a rate comes to an end of the room; 0 is
// never.
func (r room) left(value exact, rate int64) int64 {
	if rate == 0 {
		return 0
	}
	var ticks int64
	for _, end := range []int64{r.first, r.last} {
		distance := end - value.seconds
		if rate < 0 {
			distance = -distance
		}
		step := max(rate, -rate) * tickSeconds
		switch {
		case distance < -edge:
			continue
		case distance <= edge:
			return 1
		}
		if after := ceilDiv(distance-edge, step); ticks == 0 || after < ticks {
			ticks = after
		}
	}
	return ticks
}
