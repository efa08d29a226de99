// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/interpreter"
)

// CostEstimator provides the costs of functions, for estimates and for evaluations, and the sizes of inputs. It must be safe
// for concurrent use.
type CostEstimator interface {
	interpreter.ActualCostEstimator
	checker.CostEstimator
}

// Advice tells users how to reduce costs, in terms of their input. Each text is printed after a colon.
type Advice struct {
	// Evaluation is the advice for one evaluation.
	Evaluation string
	// Budget is the advice for all evaluations together.
	Budget string
}

var adviceOnDevices = Advice{
	Evaluation: "ask for fewer devices or write a cheaper expression",
	Budget:     "narrow the candidates with selectors or matchAttribute, or write a cheaper expression",
}
