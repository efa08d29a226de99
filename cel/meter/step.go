// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// attribute is a step that reads a variable, or the result of another step, followed by qualifiers: fields, keys and indices.
type attribute struct {
	interpreter.InterpretableAttribute
	cost  uint64
	makes bool
}

func (b *builder) attribute(of interpreter.InterpretableAttribute) *attribute {
	cost := uint64(common.SelectAndIdentCost)
	switch {
	case b.conditionals[of.ID()]:
		cost = 0
	case b.presence[of.ID()] && b.config.FreePresenceTests:
		cost = 0
	}
	return &attribute{of, cost, b.config.ReadsMakeLists}
}

// AddQualifier adds a qualifier to the attribute. Reading the qualifier is charged.
func (a *attribute) AddQualifier(q interpreter.Qualifier) (interpreter.Attribute, error) {
	own := qualifier{q, a.makes}
	var err error
	if literal, ok := q.(interpreter.ConstantQualifier); ok {
		_, err = a.InterpretableAttribute.AddQualifier(&constantQualifier{own, literal.Value()})
	} else {
		_, err = a.InterpretableAttribute.AddQualifier(&own)
	}
	return a, err
}

// Exec reads the attribute and charges for it.
func (a *attribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value := a.InterpretableAttribute.Exec(frame)
	accountOf(frame).charge(a.cost)
	return value
}

// Eval evaluates the attribute as Exec does.
func (a *attribute) Eval(vars interpreter.Activation) ref.Val {
	return a.Exec(interpreter.AsFrame(vars))
}

// qualifier is a field, key or index.
type qualifier struct {
	interpreter.Qualifier
	makes bool
}

// Qualify reads the qualifier and charges for it.
func (q *qualifier) Qualify(vars interpreter.Activation, of any) (any, error) {
	value, err := q.Qualifier.Qualify(vars, of)
	read(accountOf(vars), value, q.makes)
	return value, err
}

// QualifyIfPresent reads the qualifier if it is present and charges for it.
func (q *qualifier) QualifyIfPresent(vars interpreter.Activation, of any, presenceOnly bool) (any, bool, error) {
	value, present, err := q.Qualifier.QualifyIfPresent(vars, of, presenceOnly)
	if present || presenceOnly {
		read(accountOf(vars), value, q.makes)
	}
	return value, present, err
}

// constantQualifier is a literal qualifier.
type constantQualifier struct {
	qualifier
	value ref.Val
}

// Value returns the literal.
func (q *constantQualifier) Value() ref.Val { return q.value }

// read charges for reading a value. makes is true if reading a list creates a new list.
func read(a *account, value any, makes bool) {
	a.charge(1)
	if !makes {
		return
	}
	if list, ok := value.(traits.Lister); ok {
		const perElement = 40
		a.load(Load{Nanoseconds: perElement * float64(list.Size().(types.Int))}, nil)
	}
}

// constructor is a literal list, map or message.
type constructor struct {
	interpreter.InterpretableConstructor
}

// Exec makes the value and charges for it.
func (c *constructor) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value := c.InterpretableConstructor.Exec(frame)
	var cost uint64 = common.StructCreateBaseCost
	switch c.Type() {
	case types.ListType:
		cost = common.ListCreateBaseCost
	case types.MapType:
		cost = common.MapCreateBaseCost
	}
	accountOf(frame).charge(cost)
	return value
}

// Eval makes the value as Exec does.
func (c *constructor) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// alternative is a call of "or" or "orValue" on an optional value. The argument is evaluated only if the optional has no value.
// The call is free of charge.
type alternative struct {
	interpreter.InterpretableV2
	optional, otherwise interpreter.InterpretableV2
	// value is true for orValue, which returns the value instead of the optional.
	value bool
}

// alternativeOf returns the step for a call of "or" or "orValue", or nil for any other call.
func alternativeOf(of interpreter.InterpretableCall) *alternative {
	args := of.Args()
	if len(args) != 2 {
		return nil
	}
	switch function, overload := of.Function(), of.OverloadID(); {
	case function == "or" && (overload == "" || overload == "optional_or_optional"):
		return &alternative{of, args[0], args[1], false}
	case function == "orValue" && (overload == "" || overload == "optional_orValue_value"):
		return &alternative{of, args[0], args[1], true}
	default:
		return nil
	}
}

// Exec returns the optional or its value. If there is no value, Exec evaluates the argument.
func (a *alternative) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	switch of := a.optional.Exec(frame).(type) {
	case *types.Err, *types.Unknown:
		return of
	case *types.Optional:
		switch {
		case !of.HasValue():
			return a.otherwise.Exec(frame)
		case a.value:
			return of.GetValue()
		default:
			return of
		}
	default:
		return types.NoSuchOverloadErr()
	}
}

// Eval evaluates the alternative as Exec does.
func (a *alternative) Eval(vars interpreter.Activation) ref.Val {
	return a.Exec(interpreter.AsFrame(vars))
}
