// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package costbound

import (
	"math"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/meter"
	"github.com/celset/celset/cel/tree"
)

// load returns the maximum load of the call if its result has the given size.
func (c *called) load(result float64) meter.Load {
	if c.isPlain() {
		return meter.Load{}
	}
	of := meter.Call{Result: result}
	for i, operand := range []*meter.Operand{&of.First, &of.Second, &of.Third} {
		if i < len(c.args) {
			*operand = c.operand(i)
		}
	}
	switch c.name {
	case operators.Add, "cel.@mapInsert":
		if c.appends() {
			of.First = meter.Operand{}
		}
	case "matches", "find", "findAll":
		if len(c.args) > 1 {
			of.Pattern, of.Compiled = c.pattern()
		}
	}
	return meter.LoadOf(c.name, of)
}

// isPlain reports whether an operator is free for the types of its operands. Comparing a number with any value is free, and so
// is adding numbers.
func (c *called) isPlain() bool {
	switch c.name {
	case operators.Add:
		kind := c.typeOf(c.args[0]).Kind()
		return kind != types.StringKind && kind != types.BytesKind && isScalar(c.typeOf(c.args[0]))
	case operators.Equals, operators.NotEquals:
		return isScalar(c.typeOf(c.args[0])) || isScalar(c.typeOf(c.args[1]))
	default:
		return false
	}
}

// operand returns upper bounds for the size of operand i.
func (c *called) operand(i int) meter.Operand {
	t, size := c.typeOf(c.args[i]), c.at(i)
	result := meter.Operand{Size: size, Deep: c.deep(t, size)}
	if c.args[i].Kind() == ast.LiteralKind {
		switch value := c.args[i].AsLiteral().(type) {
		case types.Int:
			result.Value = math.Abs(float64(value))
		case types.Uint:
			result.Value = float64(value)
		}
	} else if t.Kind() != types.StringKind && t.Kind() != types.ListKind {
		result.Value = math.Inf(1)
	}
	return result
}

// appends reports whether the first operand is the list or map that the current macro builds.
func (c *called) appends() bool {
	return c.args[0].Kind() == ast.IdentKind && slices.Contains(c.growing, c.args[0].AsIdent())
}

// pattern returns bounds for the regular expression in the call. The second result is true if the regular expression is a
// literal.
func (c *called) pattern() (meter.Pattern, bool) {
	if text, ok := tree.Literal[types.String](c.args[1]); ok {
		if of, err := meter.PatternOf(string(text)); err == nil {
			return of, true
		}
	}
	// The largest count of a counted repetition is a thousand.
	const mostPerByte = 1000
	size := min(times(mostPerByte, c.at(1)), meter.MaxPatternInstructions)
	return meter.Pattern{Instructions: size, Steps: size, Groups: c.at(1) / 2, Parsing: meter.MaxPatternParsing}, false
}

// deep returns the maximum number of values nested in a value. size is the number of elements, or the number of bytes of a
// text.
func (w *walker) deep(t *types.Type, size float64) float64 {
	switch t.Kind() {
	case types.StringKind, types.BytesKind:
		return deepText(size)
	case types.ListKind:
		element := t.Parameters()[0]
		return 1 + times(size, w.deep(element, w.sizeOf(element)))
	case types.MapKind:
		key, value := t.Parameters()[0], t.Parameters()[1]
		return 1 + times(size, w.deep(key, w.sizeOf(key))+w.deep(value, w.sizeOf(value)))
	case types.DynKind:
		if w.nested {
			return math.Inf(1)
		}
		return 1 + times(max(1, w.list), deepText(max(w.text, size)))
	case types.AnyKind, types.TypeParamKind, types.UnknownKind, types.ErrorKind:
		return math.Inf(1)
	case types.OpaqueKind:
		var sum float64 = 1
		for _, parameter := range t.Parameters() {
			sum += w.deep(parameter, w.sizeOf(parameter))
		}
		return sum
	default:
		return 1
	}
}

func deepText(bytes float64) float64 {
	return 1 + bytes/meter.BytesPerValue
}
