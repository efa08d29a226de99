// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package costbound

import (
	"math"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/celset/celset/cel/meter"
	"github.com/celset/celset/cel/tree"
)

// call returns the bound of a call of a function or operator.
func (w *walker) call(e ast.Expr) part {
	c := &called{walker: w, expr: e, name: e.AsCall().FunctionName(), args: tree.Operands(e.AsCall())}
	c.sizes = make([]float64, len(c.args))
	var of part
	for i, arg := range c.args {
		is := w.visit(arg)
		of.and(is)
		c.sizes[i] = is.size
	}
	f, known := functions[c.name]
	if !known || len(c.args) < f.operands || w.exponents && c.mayHaveExponent() {
		w.made(w.typeOf(e), math.Inf(1))
		w.worst.compare(e, unbounded.load)
		return unbounded
	}
	switch {
	case extractors[c.name]:
	case c.name == "sort":
		// If the type of the result is unknown, it is a list of scalars at most. The function compares its values, and only
		// scalars can be compared.
		w.list = max(w.list, w.elements)
	default:
		for _, arg := range c.args {
			w.contains(e, arg)
		}
	}
	result := part{cost: of.cost + 1, size: w.sizeOf(w.typeOf(e))}
	if f.cost != nil {
		result.cost = of.cost + f.cost(c)
	}
	switch {
	case c.name == operators.Add && w.typeOf(e).Kind() == types.DynKind && !w.nested:
		result.size = c.sum()
	case f.keeps:
		result.size = f.size(c)
	case f.size != nil:
		result.size = w.made(w.typeOf(e), f.size(c))
	}
	own := c.load(result.size)
	w.worst.compare(e, own)
	result.load = added(of.load, own)
	return result
}

// sum returns the size of a sum of two values of unknown type: numbers, strings or lists. The sum is at most as long as both
// operands together. sum also records this size, because the sum may be an operand of later calls.
func (c *called) sum() float64 {
	c.text = max(c.text, both(c))
	c.list = max(c.list, c.count(0)+c.count(1))
	c.elements = max(c.elements, c.list)
	return both(c)
}

// called is a call and the sizes of its operands.
type called struct {
	*walker
	expr  ast.Expr
	name  string
	args  []ast.Expr
	sizes []float64
}

// at returns the size of operand i, or 0 if the call has no such operand.
func (c *called) at(i int) float64 {
	if i < len(c.sizes) {
		return c.sizes[i]
	}
	return 0
}

// count returns the number of elements of operand i.
func (c *called) count(i int) float64 { return c.elementsOf(c.args[i], c.at(i)) }

// number returns the absolute value of operand i if the operand is an int literal, and +Inf if it is another expression. If the
// call has no operand i, it returns otherwise.
func (c *called) number(i int, otherwise float64) float64 {
	if i >= len(c.args) {
		return otherwise
	}
	if value, ok := tree.Literal[types.Int](c.args[i]); ok {
		return math.Abs(float64(value))
	}
	return math.Inf(1)
}

// bound computes the cost of a call, or the size of the call's result.
type bound func(*called) float64

// nothing is the cost of logical operators and conditionals, which CEL does not charge.
func nothing(*called) float64 { return 0 }

// reading is the cost of reading operand i as a string.
func reading(i int) bound { return func(c *called) float64 { return 1 + traversed(c.at(i)) } }

// sizeOfArg is the size of operand i.
func sizeOfArg(i int) bound { return func(c *called) float64 { return c.at(i) } }

func elementsOfArg(i int) bound { return func(c *called) float64 { return max(1, c.count(i)) } }

// both is the sum of the sizes of the first two operands.
func both(c *called) float64 { return c.at(0) + c.at(1) }

func readingBoth(c *called) float64 { return 1 + traversed(c.at(0)+c.at(1)) }

// comparing is the cost of comparing the first two operands.
func comparing(c *called) float64 { return traversed(min(c.at(0), c.at(1))) }

// searching is the cost of searching the second operand, a string, in the first one.
func searching(c *called) float64 { return 1 + times(traversed(c.at(0)), traversed(c.at(1))) }

// matching is the cost of matching a string with a regular expression.
func matching(c *called) float64 {
	return 1 + times(traversed(1+c.at(0)), max(1, math.Ceil(c.at(1)*common.RegexStringLengthCostFactor)))
}

// traversing is the cost of visiting everything that the first operand contains.
func traversing(c *called) float64 { return 1 + c.traversal(c.typeOf(c.args[0]), c.at(0)) }

// copying is the cost of copying a list of the given size.
func copying(size bound) bound {
	return func(c *called) float64 { return 1 + common.ListCreateBaseCost + size(c) }
}

// comparingAll is the cost of comparing each element of operand i, a list, with each other element.
func comparingAll(i int) bound {
	return copying(func(c *called) float64 {
		return math.Ceil((2 + common.StringTraversalCostFactor) * times(c.count(i), c.count(i)))
	})
}

// pairs is the cost of comparing each element of one list with each element of another list.
func pairs(c *called) float64 { return 1 + 2*times(c.count(0), c.count(1)) }

func readingTwice(c *called) float64 { return 1 + 2*traversed(c.at(0)) }

// joined is the maximum length of the text that joins all strings of a list with separators.
func joined(c *called) float64 { return times(c.at(0), c.text+c.at(1)) }

func joining(c *called) float64 { return 1 + 2*traversed(joined(c)) }

// replaced is the maximum length after a replacement, which may insert the third operand before and after each character.
func replaced(c *called) float64 { return times(c.at(0)+1, c.at(2)) + c.at(0) }

// flattened is the maximum length of a flattened list. On each level, every element may be a list of the maximum length.
func flattened(c *called) float64 { return times(c.at(0), math.Pow(c.elements, c.number(1, 1))) }

func flattening(c *called) float64 {
	return 1 + common.ListCreateBaseCost + times(c.at(0), max(1, c.number(1, 1)))
}

// quoted is the maximum length of a quoted string. An escape sequence for one byte has at most six bytes.
func quoted(c *called) float64 { return 2 + 6*c.at(0) }

func oneMore(c *called) float64 { return c.at(0) + 1 }

func larger(c *called) float64 { return max(c.at(1), c.at(2)) }

// inserted is the size of a map with one more entry, or with all entries of another map.
func inserted(c *called) float64 { return c.at(0) + max(1, c.at(1)) }

// comparingNetworks is the cost of comparing networks. An address has at most 16 bytes.
func comparingNetworks(c *called) float64 { return 16 + traversed(c.at(1)) }

func converted(c *called) float64 { return max(textOfScalar, c.at(0)) }

// validating is the cost of matching a text with the longest pattern of a format.
func validating(c *called) float64 {
	return 1 + times(traversed(1+c.at(1)), math.Ceil(apiservercel.MaxNameFormatRegexSize*common.RegexStringLengthCostFactor))
}

// formatted is the maximum length of a formatted text. The format has at most one value per percent sign, and each value may
// be as large as all operands. The precision of numbers is only bounded if the format is a literal.
func formatted(c *called) float64 {
	text, ok := tree.Literal[types.String](c.args[0])
	if !ok {
		return math.Inf(1)
	}
	return meter.FormattedSize(string(text), c.operand(1).Deep)
}
