// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"github.com/google/cel-go/checker"
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
	// Evaluation is for one evaluation.
	Evaluation string
	// Budget is for all evaluations together.
	Budget string
}

var adviceOnDevices = Advice{
	Evaluation: "ask for fewer devices or write a cheaper expression",
	Budget:     "narrow the candidates with selectors or matchAttribute, or write a cheaper expression",
}
