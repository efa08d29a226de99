// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"slices"

	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// call is a call of a function or of an operator that is not a special form.
type call struct {
	interpreter.InterpretableCall
	args []interpreter.InterpretableV2
	// implementation is the function that cel-go would call. It is nil if the type of the receiver implements the function.
	implementation *functions.Overload
	// inOrder means that the evaluation of arguments stops at the first argument that fails. cel-go does this for functions
	// that take their arguments as a list.
	inOrder bool
	charge  charge
	// load computes the time and memory of the call. It is nil if the CEL cost covers them.
	load loader
	// instead replaces cel-go's implementation, or is nil. If instead returns nil, cel-go makes the call. A replacement is
	// needed if cel-go's time, or the cost of reading its result later, can't be computed from the sizes of the operands.
	instead func(of *call, values []ref.Val) ref.Val
	// pattern is the regular expression of the call if it is a constant, otherwise nil.
	pattern *pattern
}

// call returns a step that replaces a call in cel-go's plan.
func (b *builder) call(of interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	if either := alternativeOf(of); either != nil {
		return either, nil
	}
	function := of.Function()
	result := &call{InterpretableCall: of, args: of.Args(), load: b.loaderOf(function), instead: insteadOf(function)}
	if function != operators.Equals && function != operators.NotEquals {
		result.implementation = b.implementation(of)
	}
	result.inOrder = takesList(result.implementation, len(result.args))
	if b.optimize {
		var err error
		if result.pattern, err = constantPattern(of); err != nil {
			return nil, err
		}
		if result.pattern != nil {
			result.instead = match
		}
	}
	result.charge = b.chargeOf(of, result.pattern)
	return result, nil
}

// implementation returns the implementation that cel-go would plan. If only one overload fits, it is the implementation of this
// overload. Otherwise it is the implementation of the function, which selects the overload at run time.
func (b *builder) implementation(of interpreter.InterpretableCall) *functions.Overload {
	if id := of.OverloadID(); id != "" {
		if found, ok := b.dispatcher.FindOverload(id); ok {
			return found
		}
	}
	found, _ := b.dispatcher.FindOverload(of.Function())
	return found
}

func takesList(of *functions.Overload, args int) bool {
	switch args {
	case 0:
		return false
	case 1:
		return of != nil && of.Unary == nil
	case 2:
		return of != nil && of.Binary == nil
	default:
		return true
	}
}

func insteadOf(function string) func(*call, []ref.Val) ref.Val {
	switch {
	case function == operators.Equals:
		return func(_ *call, values []ref.Val) ref.Val { return types.Equal(values[0], values[1]) }
	case function == operators.NotEquals:
		return func(_ *call, values []ref.Val) ref.Val {
			return types.Bool(types.Equal(values[0], values[1]) != types.True)
		}
	case function == operators.Add:
		return joined
	case function == "quantity" || function == "isQuantity":
		return clampQuantity
	case loads[function].zoned:
		return inCachedZone
	default:
		return nil
	}
}

// Exec evaluates the arguments, charges the call and makes it.
func (c *call) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	account := accountOf(frame)
	// The stack above base has the values of this call's arguments. An argument's own calls leave the stack as it was.
	base := len(account.values)
	var result ref.Val
	strict := c.implementation == nil || !c.implementation.NonStrict
	for _, arg := range c.args {
		value := arg.Exec(frame)
		account.values = append(account.values, value)
		if strict && result == nil && types.IsUnknownOrError(value) {
			if result = value; c.inOrder {
				break
			}
		}
	}
	values := account.values[base:]
	if result == nil {
		if c.load != nil {
			account.load(c.load(account, c, values), c)
		}
		result = c.make(values)
	}
	// CEL charges for a call if all its arguments were evaluated, even if the call was not made because an argument failed.
	if len(values) == len(c.args) {
		account.charge(c.charge(values, result))
	}
	account.values = account.values[:base]
	return result
}

// Eval evaluates the call as Exec does.
func (c *call) Eval(vars interpreter.Activation) ref.Val { return c.Exec(interpreter.AsFrame(vars)) }

// exceeds returns the error for a call that would exceed a limit. c is nil if a read exceeds the limit.
func (c *call) exceeds(limit uint64, unit Unit) *LimitError {
	if c == nil {
		return &LimitError{Limit: limit, Unit: unit}
	}
	return &LimitError{Limit: limit, Unit: unit, Function: c.Function(), ID: c.ID()}
}

// make makes the call and returns its result.
func (c *call) make(values []ref.Val) ref.Val {
	if c.instead != nil {
		if result := c.instead(c, values); result != nil {
			return result
		}
	}
	of := c.implementation
	if len(values) == 0 {
		return types.LabelErrNode(c.ID(), of.Function())
	}
	first := values[0]
	if of != nil && (of.OperandTrait == 0 || of.NonStrict && types.IsUnknownOrError(first) || first.Type().HasTrait(of.OperandTrait)) {
		switch {
		case c.inOrder:
			return types.LabelErrNode(c.ID(), of.Function(slices.Clone(values)...))
		case len(values) == 1:
			return types.LabelErrNode(c.ID(), of.Unary(first))
		default:
			return types.LabelErrNode(c.ID(), of.Binary(first, values[1]))
		}
	}
	if first.Type().HasTrait(traits.ReceiverType) {
		return types.LabelErrNode(c.ID(), first.(traits.Receiver).Receive(c.Function(), c.OverloadID(), slices.Clone(values[1:])))
	}
	if c.inOrder {
		return types.NewErrWithNodeID(c.ID(), "no such overload: %s %d", c.Function(), c.ID())
	}
	return types.NewErrWithNodeID(c.ID(), "no such overload: %s", c.Function())
}

// joined copies two lists into one. cel-go instead links them, so reading an element of a list with a thousand links takes a
// thousand steps. And a list that is linked to itself sixty times has more elements than fit in memory. joined returns nil for
// a list that a macro builds, because cel-go appends to such a list in place.
func joined(_ *call, values []ref.Val) ref.Val {
	one, ok := values[0].(traits.Lister)
	if !ok {
		return nil
	}
	if _, ok := values[0].(traits.MutableLister); ok {
		return nil
	}
	two, ok := values[1].(traits.Lister)
	if !ok {
		return nil
	}
	// If one of the lists is empty, CEL returns the other list without copying.
	if one.Size() == types.IntZero || two.Size() == types.IntZero {
		return nil
	}
	elements := make([]ref.Val, 0, int(one.Size().(types.Int)+two.Size().(types.Int)))
	for _, list := range []traits.Lister{one, two} {
		for it := list.Iterator(); it.HasNext() == types.True; {
			elements = append(elements, it.Next())
		}
	}
	return types.NewRefValList(types.DefaultTypeAdapter, elements)
}
