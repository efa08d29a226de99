// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// plain is "!", or what a macro asks before each element: whether to go on. There are two of
// them for each element that exists() goes through, and most of what a call has is of no use to them:
// they have one operand, no load, and cost one.
type plain struct{ *call }

// isPlain reports whether a call is one. Somebody who estimates costs of operators, too, may say
// that it costs something else.
func (b *builder) isPlain(c *call) bool {
	if function := c.Function(); function != operators.LogicalNot && function != operators.NotStrictlyFalse {
		return false
	}
	isCELs := b.config.Estimator == nil || b.config.OperatorsAsCEL
	return isCELs && len(c.args) == 1 && c.implementation != nil && c.implementation.Unary != nil && c.load == nil
}

// Exec evaluates the operand, makes the call and charges.
func (p *plain) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value, of := p.args[0].Exec(frame), p.implementation
	failed := types.IsUnknownOrError(value)
	account, result := accountOf(frame), value
	switch {
	case failed && !of.NonStrict:
	case failed, of.OperandTrait == 0, value.Type().HasTrait(of.OperandTrait):
		result = types.LabelErrNode(p.ID(), of.Unary(value))
	default:
		result = p.make(account.operandsOf(value, nil, nil, 1))
	}
	account.charge(1)
	return result
}

// Eval is Exec.
func (p *plain) Eval(vars interpreter.Activation) ref.Val { return p.Exec(interpreter.AsFrame(vars)) }
