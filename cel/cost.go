// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/interpreter"
)

// CostEstimator knows the costs of functions, while they are evaluated and
// before, and the sizes of inputs. It is called concurrently.
type CostEstimator interface {
	interpreter.ActualCostEstimator
	checker.CostEstimator
}

// Advice says what to do about costs that are too high, in the terms of the
// input. The texts follow a colon.
type Advice struct {
	// Evaluation is for one evaluation or estimate.
	Evaluation string
	// Budget is for all evaluations together.
	Budget string
}

var adviceOnDevices = Advice{
	Evaluation: "ask for fewer devices or write a cheaper expression",
	Budget:     "narrow the candidates with selectors or matchAttribute, or write a cheaper expression",
}

// checkEstimate refuses an expression that is expensive on large inputs, before
// it has been evaluated on one. The error is an [*Error] with [ReasonEstimate].
func (e *Environment) checkEstimate(ast *cel.Ast) error {
	if e.estimateLimit == 0 || e.costs == nil {
		return nil
	}
	estimate, err := e.env.EstimateCost(ast, e.costs)
	if err != nil {
		return &Error{Reason: ReasonInvalid, Expression: ast.Source().Content(), Message: "estimate the cost: " + err.Error(), err: err}
	}
	if estimate.Max <= e.estimateLimit {
		return nil
	}
	return positioned(ReasonEstimate, ast.Source().Content(), common.NewLocation(1, 0),
		fmt.Sprintf("an evaluation may cost up to %d by estimate, the limit is %d: %s",
			estimate.Max, e.estimateLimit, e.advice.Evaluation))
}
