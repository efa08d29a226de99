// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/ext"
)

// mathematics returns the options of the library math. Its version is fixed, so that a later cel-go adds no functions that
// older releases refuse.
func mathematics() []celgo.EnvOption {
	return []celgo.EnvOption{ext.Math(ext.MathVersion(2)), celgo.ASTValidators(mixedNumbers{})}
}

// mixedNumbers exempts math.greatest and math.least from the rule of Kubernetes that all elements of a list have one type:
// their macros make a list of the arguments, and the type of an attribute is not known.
type mixedNumbers struct{}

// Name identifies the validator.
func (mixedNumbers) Name() string { return "celset.validator.mixed_numbers" }

// Configure adds the functions to those that are exempt.
func (mixedNumbers) Configure(config celgo.MutableValidatorConfig) error {
	exempt, _ := config.GetOrDefault(celgo.HomogeneousAggregateLiteralExemptFunctions, []string{}).([]string)
	return config.Set(celgo.HomogeneousAggregateLiteralExemptFunctions, append(exempt[:len(exempt):len(exempt)], "math.@max", "math.@min"))
}

// Validate accepts everything.
func (mixedNumbers) Validate(*celgo.Env, celgo.ValidatorConfig, *ast.AST, *celgo.Issues) {}
