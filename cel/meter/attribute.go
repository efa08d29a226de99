// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

const (
	conditional   = operators.Conditional
	qualifierCost = 1
)

// attribute is a variable, or the result of another step, with qualifiers: fields, keys
// and indices.
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

// AddQualifier charges for the qualifier, too.
func (a *attribute) AddQualifier(q interpreter.Qualifier) (interpreter.Attribute, error) {
	if constant, ok := q.(interpreter.ConstantQualifier); ok {
		q = &constantQualifier{constant, a.makes}
	} else {
		q = &computedQualifier{q, a.makes}
	}
	_, err := a.InterpretableAttribute.AddQualifier(q)
	return a, err
}

// Exec reads the attribute.
func (a *attribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value := a.InterpretableAttribute.Exec(frame)
	accountOf(frame).charge(a.cost)
	return value
}

// Eval is Exec.
func (a *attribute) Eval(vars interpreter.Activation) ref.Val {
	return a.Exec(interpreter.AsFrame(vars))
}

// constantQualifier is a field, or a key or index that is a literal.
type constantQualifier struct {
	interpreter.ConstantQualifier
	makes bool
}

// Qualify reads.
func (q *constantQualifier) Qualify(vars interpreter.Activation, of any) (any, error) {
	value, err := q.ConstantQualifier.Qualify(vars, of)
	read(accountOf(vars), value, q.makes)
	return value, err
}

// QualifyIfPresent reads if there is something.
func (q *constantQualifier) QualifyIfPresent(vars interpreter.Activation, of any, presenceOnly bool) (any, bool, error) {
	value, present, err := q.ConstantQualifier.QualifyIfPresent(vars, of, presenceOnly)
	if present || presenceOnly {
		read(accountOf(vars), value, q.makes)
	}
	return value, present, err
}

// QualifierValueEquals is for patterns of unknown attributes, of which there are none.
func (q *constantQualifier) QualifierValueEquals(value any) bool {
	equator, ok := q.ConstantQualifier.(interface{ QualifierValueEquals(any) bool })
	return ok && equator.QualifierValueEquals(value)
}

// computedQualifier is a key or index that is computed.
type computedQualifier struct {
	interpreter.Qualifier
	makes bool
}

// Qualify reads.
func (q *computedQualifier) Qualify(vars interpreter.Activation, of any) (any, error) {
	value, err := q.Qualifier.Qualify(vars, of)
	read(accountOf(vars), value, q.makes)
	return value, err
}

// QualifyIfPresent reads if there is something.
func (q *computedQualifier) QualifyIfPresent(vars interpreter.Activation, of any, presenceOnly bool) (any, bool, error) {
	value, present, err := q.Qualifier.QualifyIfPresent(vars, of, presenceOnly)
	if present || presenceOnly {
		read(accountOf(vars), value, q.makes)
	}
	return value, present, err
}

// read charges for a value that was looked up. makes tells that a list was made for it.
func read(a *account, value any, makes bool) {
	a.charge(qualifierCost)
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
	cost uint64
}

func newConstructor(of interpreter.InterpretableConstructor) *constructor {
	switch of.Type() {
	case types.ListType:
		return &constructor{of, common.ListCreateBaseCost}
	case types.MapType:
		return &constructor{of, common.MapCreateBaseCost}
	default:
		return &constructor{of, common.StructCreateBaseCost}
	}
}

// Exec makes the value.
func (c *constructor) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value := c.InterpretableConstructor.Exec(frame)
	accountOf(frame).charge(c.cost)
	return value
}

// Eval is Exec.
func (c *constructor) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}
