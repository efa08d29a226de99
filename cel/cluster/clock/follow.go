// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/meter"
	"github.com/celset/celset/cel/tree"
)

const (
	// Function is how the time is written in expressions.
	Function = "now"
	// Variable is what it becomes when they are parsed. No expression can have such a name.
	Variable = "@now"
)

// Declarations are what an environment needs to have now().
func Declarations() []celgo.EnvOption {
	return []celgo.EnvOption{
		celgo.Variable(Variable, celgo.TimestampType),
		celgo.Macros(celgo.GlobalMacro(Function, 0, func(f celgo.MacroExprFactory, _ ast.Expr, _ []ast.Expr) (ast.Expr, *celgo.Error) {
			return f.NewIdent(Variable), nil
		})),
	}
}

// Followed is what is known of an expression and the time.
type Followed struct {
	// Stepwise tells that it can't be followed: if it read the time, it holds until the
	// next tick ([Reading.Step]).
	Stepwise bool
	// Watches are for the calls that ask about the time, by their ids. The input of the
	// evaluation has to be a [Reader].
	Watches map[int64]meter.Watch
}

// Follow finds out how the answer of a checked expression depends on the time.
func Follow(checked *ast.AST) Followed {
	timed := false
	tree.Visit(checked.Expr(), func(part ast.Expr, _ tree.Names) { timed = timed || tree.IsIdent(part, Variable) })
	if !timed {
		return Followed{}
	}
	f := &follower{checked: checked, watches: map[int64]meter.Watch{}, scope: tree.Scope[rates]{}}
	f.of(checked.Expr())
	if f.lost {
		return Followed{Stepwise: true}
	}
	return Followed{Watches: f.watches}
}

// mostVisits is how often parts are looked at. Loops in loops can take many rounds.
const mostVisits = 30_000

// follower goes through an expression once, but for the steps of loops.
type follower struct {
	checked *ast.AST
	visits  int
	watches map[int64]meter.Watch
	scope   tree.Scope[rates]
	// lost tells that something can't be followed.
	lost bool
}

// lose is for a part that can't be followed.
func (f *follower) lose() rates {
	f.lost = true
	return fixed
}

// limited gives up where there are too many rates.
func (f *follower) limited(r rates) rates {
	if r.excessive() {
		return f.lose()
	}
	return r
}

// unmoved gives up if a part moves.
func (f *follower) unmoved(parts ...ast.Expr) rates {
	for _, part := range parts {
		if f.of(part).moves() {
			f.lose()
		}
	}
	return fixed
}

// any are the rates of each of several parts.
func (f *follower) any(parts ...ast.Expr) rates {
	result := fixed
	for i, part := range parts {
		if of := f.of(part); i == 0 {
			result = of
		} else {
			result = result.or(of)
		}
	}
	return f.limited(result)
}

// of are the rates of a part.
func (f *follower) of(part ast.Expr) rates {
	if f.visits++; f.visits > mostVisits {
		f.lost = true
	}
	if f.lost {
		return fixed
	}
	switch part.Kind() {
	case ast.IdentKind:
		return f.variable(part.AsIdent())
	case ast.SelectKind:
		inside := f.of(part.AsSelect().Operand())
		if part.AsSelect().IsTestOnly() {
			return fixed
		}
		return inside
	case ast.CallKind:
		return f.call(part)
	case ast.ListKind:
		return f.any(part.AsList().Elements()...)
	case ast.MapKind:
		var values []ast.Expr
		for _, entry := range part.AsMap().Entries() {
			f.unmoved(entry.AsMapEntry().Key())
			values = append(values, entry.AsMapEntry().Value())
		}
		return f.any(values...)
	case ast.ComprehensionKind:
		return f.comprehension(part.AsComprehension())
	default:
		return f.unmoved(tree.Parts(part)...)
	}
}

func (f *follower) variable(name string) rates {
	if declared, ok := f.scope.Lookup(name); ok {
		return declared
	}
	if name == Variable {
		return timely
	}
	return fixed
}

// comprehension goes round a loop until the accumulator can't move otherwise than it is known
// to, which it can't forever: then it has too many rates.
func (f *follower) comprehension(c ast.ComprehensionExpr) rates {
	over, accumulated := f.of(c.IterRange()), f.of(c.AccuInit())
	first := over
	if c.HasIterVar2() || f.checked.GetType(c.IterRange().ID()).Kind() == types.MapKind {
		first = fixed // a place in a list, or a key
	}
	for before := rates(nil); len(accumulated) > len(before) && !f.lost; {
		before = accumulated
		f.scope.Declare(c.AccuVar(), accumulated)
		f.scope.Declare(c.IterVar(), first)
		if c.HasIterVar2() {
			f.scope.Declare(c.IterVar2(), over)
		}
		f.of(c.LoopCondition())
		accumulated = f.limited(accumulated.or(f.of(c.LoopStep())))
		f.scope.Forget(append(tree.IterVars(c), c.AccuVar())...)
	}
	f.scope.Declare(c.AccuVar(), accumulated)
	defer f.scope.Forget(c.AccuVar())
	return f.of(c.Result())
}

func (f *follower) call(part ast.Expr) rates {
	function, operands := part.AsCall().FunctionName(), tree.Operands(part.AsCall())
	switch function {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.NotStrictlyFalse,
		// What there is does not depend on what it is.
		"size", "hasValue", "type":
		f.any(operands...)
		return fixed
	case operators.Conditional:
		f.of(operands[0])
		return f.any(operands[1:]...)
	case operators.Index, operators.OptIndex, operators.OptSelect:
		f.unmoved(operands[1:]...)
		return f.of(operands[0])
	case "dyn", "timestamp", "duration", "optional.of", "optional.none", "value", "or", "orValue":
		return f.any(operands...)
	case "cel.@mapInsert":
		if len(operands) == 3 {
			f.unmoved(operands[1])
		}
		return f.any(operands...)
	case operators.Add, operators.Subtract, operators.Negate:
		return f.sum(part, function, operands)
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.Equals, operators.NotEquals:
		return f.comparison(part, function, operands)
	default:
		if _, isField := fields[function]; isField {
			return f.field(part, function, operands)
		}
		return f.unmoved(operands...)
	}
}

// watch has a watch called, by the clock of the input.
func (f *follower) watch(part ast.Expr, watch func(clock *Reading, operands meter.Watched)) {
	f.watches[part.ID()] = func(watched meter.Watched) {
		if reader, ok := watched.Input.(Reader); ok && reader.Clock().read {
			watch(reader.Clock(), watched)
		}
	}
}
