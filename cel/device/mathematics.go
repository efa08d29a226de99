// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/ext"
)

// mathematics returns the options of the math library. Its version is pinned, so that a newer cel-go doesn't add functions that
// older releases reject.
func mathematics() []celgo.EnvOption {
	return []celgo.EnvOption{ext.Math(ext.MathVersion(2)), celgo.ASTValidators(mixedNumbers{})}
}

// mixedNumbers exempts math.greatest and math.least from Kubernetes' rule that all elements of a list have one type. Their macros
// put the arguments into a list, and attributes have the type dyn.
type mixedNumbers struct{}

// Name implements the validator interface.
func (mixedNumbers) Name() string { return "celset.validator.mixed_numbers" }

// Configure adds the functions to the exempt ones.
func (mixedNumbers) Configure(config celgo.MutableValidatorConfig) error {
	exempt, _ := config.GetOrDefault(celgo.HomogeneousAggregateLiteralExemptFunctions, []string{}).([]string)
	return config.Set(celgo.HomogeneousAggregateLiteralExemptFunctions, append(exempt[:len(exempt):len(exempt)], "math.@max", "math.@min"))
}

// Validate accepts everything.
func (mixedNumbers) Validate(*celgo.Env, celgo.ValidatorConfig, *ast.AST, *celgo.Issues) {}
