// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"

	"github.com/google/cel-go/checker"
)

// EstimateCost returns bounds of the cost of one evaluation, in CEL cost units, without evaluating. costs provides the sizes of
// the input and the costs of function calls. A maximum of math.MaxUint64 means that there is no upper bound. The error is an
// [*Error]. If the estimate fails, the expression can still be evaluated.
func (p *Program) EstimateCost(costs checker.CostEstimator) (estimate checker.CostEstimate, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			err = p.estimateError(fmt.Errorf("%v", failure))
		}
	}()
	estimate, err = p.environment.env.EstimateCost(p.ast, costs)
	if err != nil {
		return checker.CostEstimate{}, p.estimateError(err)
	}
	return estimate, nil
}

func (p *Program) estimateError(err error) *Error {
	return &Error{Reason: ReasonInvalid, Expression: p.expression, Message: "estimate the cost: " + err.Error(), err: err}
}
