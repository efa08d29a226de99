// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/interpreter"
)

// CostEstimator provides the costs of functions, both estimated and during an evaluation, and the sizes of inputs. It is called
// concurrently.
type CostEstimator interface {
	interpreter.ActualCostEstimator
	checker.CostEstimator
}

// Advice tells users how to reduce costs, in the terms of the input. The texts follow a colon.
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
