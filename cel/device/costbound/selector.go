// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package costbound

import (
	"context"
	"fmt"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/meter"
	"github.com/celset/celset/cel/tree"
)

// SelectorLimits are the limits of evaluating a device selector on one device. Upstream's evaluator charges for a call only
// after it was made, and can't be interrupted during a call. So selectors are bounded before they run. A usual selector, which
// compares attributes, takes less than a hundredth of the limits.
var SelectorLimits = meter.Limits{Cost: 100_000, Bytes: cel.DefaultMemoryLimit}

// Selectors compiles device selectors and bounds their costs. It is safe for concurrent use.
type Selectors struct {
	environment *device.Environment
}

// NewSelectors returns Selectors with a cache as configured by config.
func NewSelectors(config cel.Config) (*Selectors, error) {
	environment, err := device.NewSelectorEnvironment(config)
	if err != nil {
		return nil, err
	}
	return &Selectors{environment}, nil
}

// Judge compiles a selector and bounds its cost. If derives is true, text is the expression of a derived attribute instead. If
// the text does not compile, the error is a [*cel.Error]. If the selector may exceed [SelectorLimits] on a device that the API
// allows, the error is a [*SelectorError], and Judge also returns the expression. Any other error is the error of the context.
// The caller must not evaluate the expression.
func (s *Selectors) Judge(ctx context.Context, text string, derives bool) (*device.Expression, error) {
	compile := s.environment.CompileAny
	if !derives {
		compile = func(ctx context.Context, text string) (*device.Expression, error) {
			return s.environment.Compile(ctx, text)
		}
	}
	expression, err := compile(ctx, text)
	if err != nil {
		return nil, err
	}
	end, err := cel.TakeTurn(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	w := newWalker(expression, 0, device.LargestSizes())
	w.exponents = true
	if bound := w.bound(); !bound.Within(SelectorLimits) {
		return expression, &SelectorError{Selector: text, Heaviest: bound.Heaviest}
	}
	return expression, nil
}

// mayHaveExponent reports whether a call may parse a quantity with a large exponent. A text that the expression computes
// counts, too. Large exponents are costly: 1e2000000000 has two billion digits when it is compared.
func (c *called) mayHaveExponent() bool {
	if c.name != "quantity" && c.name != "isQuantity" {
		return false
	}
	if text, ok := tree.Literal[types.String](c.args[0]); ok {
		_, isLarge := meter.ClampExponent(string(text))
		return isLarge
	}
	return !device.IsAttribute(c.checked, c.args[0])
}

// SelectorError reports that a device selector may take more time or memory on one device than allowed.
type SelectorError struct {
	// Selector is the text of the selector.
	Selector string
	// Heaviest is the call with the greatest load.
	Heaviest Position
}

// Error names the call with the greatest load, and a remedy.
func (e *SelectorError) Error() string {
	function := e.Heaviest.Function
	if symbol, isOperator := operators.FindReverse(function); isOperator && symbol != "" {
		function = symbol
	}
	return fmt.Sprintf("the selector may take more than %d CEL cost units or %d bytes on one device, most of it in %s at line %d, column %d: "+
		"compare attributes directly, with shorter texts and lists", SelectorLimits.Cost, SelectorLimits.Bytes, function, e.Heaviest.Line, e.Heaviest.Column)
}
