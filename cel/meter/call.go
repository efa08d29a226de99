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

// call is a call of a function or an operator that is not a special form.
type call struct {
	interpreter.InterpretableCall
	args []interpreter.InterpretableV2
	// implementation is nil if the value that the function is called on implements it.
	implementation *functions.Overload
	charge         charge
	load           loader
	// pattern is the regular expression of the call if that is a constant.
	pattern *pattern
}

// call makes a step of our own of a planned call.
func (b *builder) call(of interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	function := of.Function()
	if function == operators.Equals || function == operators.NotEquals {
		return &equality{of, of.Args(), function == operators.NotEquals, b.chargeOf(of, nil)}, nil
	}
	if either := alternativeOf(of); either != nil {
		return either, nil
	}
	result := &call{
		InterpretableCall: of, args: of.Args(), implementation: b.implementation(of),
		load: b.loaderOf(of),
	}
	if b.optimize {
		var err error
		if result.pattern, err = constantPattern(of); err != nil {
			return nil, err
		}
	}
	if b.isPlain(result) {
		return &plain{result}, nil
	}
	result.charge = b.chargeOf(of, result.pattern)
	return result, nil
}

// implementation is what cel-go plans: that of the overload if there is one only, else
// that of the function, which finds out.
func (b *builder) implementation(of interpreter.InterpretableCall) *functions.Overload {
	if id := of.OverloadID(); id != "" {
		if found, ok := b.dispatcher.FindOverload(id); ok {
			return found
		}
	}
	found, _ := b.dispatcher.FindOverload(of.Function())
	return found
}

// operands are the values of the arguments, of which two are enough for most functions.
type operands struct {
	first, second ref.Val
	all           []ref.Val
	count         int
	// pair is what list returns, so that there is no list for each call.
	pair [2]ref.Val
}

// list has all of them. It is to be read, and not to be kept: the next call uses it again.
func (o *operands) list() []ref.Val {
	if o.all != nil || o.count == 0 {
		return o.all
	}
	o.pair = [2]ref.Val{o.first, o.second}
	return o.pair[:o.count]
}

// Exec evaluates the arguments, charges and makes the call.
func (c *call) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	account := accountOf(frame)
	first, second, all, failure, complete := c.operands(frame)
	values := account.operandsOf(first, second, all, len(c.args))
	if failure == nil {
		if c.load != nil {
			account.load(c.load(account, c, values), c.Function(), c.ID())
		}
		failure = c.make(values)
	}
	// CEL charges for a call that was not made because an argument has no value, if all
	// arguments were evaluated.
	if complete {
		account.charge(c.charge(values, failure))
	}
	return failure
}

// Eval is Exec.
func (c *call) Eval(vars interpreter.Activation) ref.Val { return c.Exec(interpreter.AsFrame(vars)) }

// operands evaluates the arguments. failure is what the call returns if it is not made.
// complete tells that all arguments were evaluated.
func (c *call) operands(frame *interpreter.ExecutionFrame) (first, second ref.Val, all []ref.Val, failure ref.Val, complete bool) {
	strict := c.implementation == nil || !c.implementation.NonStrict
	if len(c.args) > 2 || c.isVariadic() {
		return c.variadic(frame, strict)
	}
	if len(c.args) > 0 {
		first = c.args[0].Exec(frame)
	}
	if len(c.args) > 1 {
		second = c.args[1].Exec(frame)
	}
	switch {
	case strict && len(c.args) > 0 && types.IsUnknownOrError(first):
		return first, second, nil, first, true
	case strict && len(c.args) > 1 && types.IsUnknownOrError(second):
		return first, second, nil, second, true
	}
	return first, second, nil, nil, true
}

func (c *call) variadic(frame *interpreter.ExecutionFrame, strict bool) (first, second ref.Val, all []ref.Val, failure ref.Val, complete bool) {
	all = make([]ref.Val, len(c.args))
	for i, arg := range c.args {
		value := arg.Exec(frame)
		all[i] = value
		switch i {
		case 0:
			first = value
		case 1:
			second = value
		}
		if strict && types.IsUnknownOrError(value) {
			return first, second, all, value, i == len(c.args)-1
		}
	}
	return first, second, all, nil, true
}

// isVariadic reports whether the arguments are evaluated one after the other until one
// fails, as cel-go does for functions that take a list of them.
func (c *call) isVariadic() bool {
	of := c.implementation
	switch {
	case len(c.args) == 0:
		return false
	case of == nil:
		return len(c.args) > 2
	case len(c.args) == 1:
		return of.Unary == nil && of.Function != nil
	case len(c.args) == 2:
		return of.Binary == nil && of.Function != nil
	default:
		return true
	}
}

// make makes the call.
func (c *call) make(values *operands) ref.Val {
	if c.pattern != nil {
		return types.LabelErrNode(c.ID(), c.pattern.match(values))
	}
	if result := bounded(c.Function(), values); result != nil {
		return types.LabelErrNode(c.ID(), result)
	}
	of := c.implementation
	if len(c.args) == 0 {
		return types.LabelErrNode(c.ID(), of.Function())
	}
	first := values.first
	nonStrict := of != nil && of.NonStrict && types.IsUnknownOrError(first)
	if of != nil && (of.OperandTrait == 0 || nonStrict || first.Type().HasTrait(of.OperandTrait)) {
		switch {
		case values.all != nil && of.Function != nil:
			return types.LabelErrNode(c.ID(), of.Function(values.all...))
		case len(c.args) == 1 && of.Unary != nil:
			return types.LabelErrNode(c.ID(), of.Unary(first))
		case len(c.args) == 2 && of.Binary != nil:
			return types.LabelErrNode(c.ID(), of.Binary(first, values.second))
		}
	}
	if first.Type().HasTrait(traits.ReceiverType) {
		return types.LabelErrNode(c.ID(), first.(traits.Receiver).Receive(c.Function(), c.OverloadID(), slices.Clone(values.list()[1:])))
	}
	if len(c.args) > 2 || c.isVariadic() {
		return types.NewErrWithNodeID(c.ID(), "no such overload: %s %d", c.Function(), c.ID())
	}
	return types.NewErrWithNodeID(c.ID(), "no such overload: %s", c.Function())
}

// equality is "==" or "!=".
type equality struct {
	interpreter.InterpretableCall
	args   []interpreter.InterpretableV2
	not    bool
	charge charge
}

// Exec compares.
func (e *equality) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	account := accountOf(frame)
	first := e.args[0].Exec(frame)
	values := account.operandsOf(first, e.args[1].Exec(frame), nil, 2)
	var result ref.Val
	switch {
	case types.IsUnknownOrError(values.first):
		result = values.first
	case types.IsUnknownOrError(values.second):
		result = values.second
	default:
		if isContainer(values.first) && isContainer(values.second) {
			account.load(comparing(values.first, values.second), e.Function(), e.ID())
		}
		result = types.Equal(values.first, values.second)
		if e.not {
			result = types.Bool(result != types.True)
		}
	}
	account.charge(e.charge(values, result))
	return result
}

// Eval is Exec.
func (e *equality) Eval(vars interpreter.Activation) ref.Val {
	return e.Exec(interpreter.AsFrame(vars))
}
