// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// alternative is "or" or "orValue" of an optional value: what follows is evaluated only if
// there is none, and nothing is charged.
type alternative struct {
	interpreter.InterpretableV2
	optional, otherwise interpreter.InterpretableV2
	// value returns the value and not the optional.
	value bool
}

// alternativeOf recognizes one. nil if the call is something else.
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

// Exec returns the first that there is.
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

// Eval is Exec.
func (a *alternative) Eval(vars interpreter.Activation) ref.Val {
	return a.Exec(interpreter.AsFrame(vars))
}
