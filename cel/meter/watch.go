// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// Watch is told of a call that was made. It can't change anything about it, and is charged for
// with half a microsecond.
type Watch func(Watched)

// Watched is a call of which somebody wants to know.
type Watched struct {
	// Input is that of the evaluation.
	Input interpreter.Activation
	// First and Second are the first two operands, nil where there is none.
	First, Second ref.Val
	// Result is what the call returned, be it an error.
	Result ref.Val
}

// watching is what a watch takes, besides the call.
var watching = Load{Nanoseconds: 500}

// watched tells a watch of a call.
func watched(frame *interpreter.ExecutionFrame, by Watch, values *operands, result ref.Val) {
	if s := scopeOf(frame); s != nil {
		s.account.load(watching, "", 0)
		by(Watched{Input: s.Activation, First: values.first, Second: values.second, Result: result})
	}
}
