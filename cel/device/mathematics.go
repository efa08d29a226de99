// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/ext"
)

// mathematics returns the options of the math library. The version is pinned. Otherwise a newer cel-go could add functions that
// older releases of celset reject.
func mathematics() []celgo.EnvOption {
	return []celgo.EnvOption{ext.Math(ext.MathVersion(2)), celgo.ASTValidators(mixedNumbers{})}
}

// mixedNumbers exempts math.greatest and math.least from Kubernetes' rule that all elements of a list have one type. The macros
// put their arguments into a list, and attributes have the type dyn, so a list with a number and an attribute would be
// rejected.
type mixedNumbers struct{}

// Name implements the validator interface.
func (mixedNumbers) Name() string { return "celset.validator.mixed_numbers" }

// Configure adds both functions to the exemptions of the rule.
func (mixedNumbers) Configure(config celgo.MutableValidatorConfig) error {
	exempt, _ := config.GetOrDefault(celgo.HomogeneousAggregateLiteralExemptFunctions, []string{}).([]string)
	return config.Set(celgo.HomogeneousAggregateLiteralExemptFunctions, append(exempt[:len(exempt):len(exempt)], "math.@max", "math.@min"))
}

// Validate accepts every expression, because the validator only changes the configuration.
func (mixedNumbers) Validate(*celgo.Env, celgo.ValidatorConfig, *ast.AST, *celgo.Issues) {}
