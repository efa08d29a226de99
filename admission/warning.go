// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"math"
	"math/big"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound"
)

// Users see warnings as HTTP headers. If there are many warnings, the API server truncates each after about 250 characters.

// defaultWarning returns a warning about a default, a definition in a class that applies without a reference. Schedulers
// without celset ignore a default and allocate any devices. With a reference in the claim, such schedulers would find no
// devices.
func defaultWarning(definition v1alpha1.Definition) []string {
	if definition.Enforcement != v1alpha1.EnforcementAlways {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s is a default: schedulers without celset ignore it and allocate any devices; "+
		"safe only where celset-scheduler schedules all pods that use the class (docs/constraints.md#defaults-of-a-class)", definition.Source.Field, definition.Name)}
}

// orderWarning returns a warning if the result of the expression may depend on the order of the devices. The parameter result is
// the word for the result in the message: "verdict" or "value".
func orderWarning(where, name, result string, expression *device.Expression) []string {
	place, found := expression.OrderDependence()
	if !found {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s, line %d, column %d: the %s may depend on the order of the devices; "+
		"each set is evaluated in one order only, the order of the requests and pools; use all or exists instead of positions", where, name, place.Line, place.Column, result)}
}

// suspicionWarnings returns warnings about probable mistakes in an expression, such as a condition that reads no device.
func suspicionWarnings(where, name string, expression *device.Expression) []string {
	var result []string
	for _, found := range expression.Suspicions() {
		result = append(result, fmt.Sprintf("%s: %s, line %d, column %d: %s", where, name, found.Line, found.Column, found.Message))
	}
	return result
}

// costWarning returns a warning about an expression if one evaluation may exceed the cost limit.
func costWarning(where, name string, expression *device.Expression, asked demand) []string {
	cost, err := expression.EstimateCost(asked.devices)
	if err != nil {
		return []string{oneLine(fmt.Sprintf("%s: %s: %v", where, name, err))}
	}
	if cost <= cel.DefaultCostLimit {
		return nil
	}
	upTo := fmt.Sprintf("up to %d", cost)
	if cost == math.MaxUint64 {
		upTo = "any number of"
	}
	return []string{fmt.Sprintf("%s: %s: one evaluation on %d devices may cost %s CEL cost units, the limit is %d; "+
		"ask for fewer devices or write a cheaper expression", where, name, asked.devices, upTo, cel.DefaultCostLimit)}
}

// setsWarning returns a warning if the search must evaluate an expression for each of many sets.
func setsWarning(where, name string, expression *device.Expression, asked demand) []string {
	if asked.sets.Cmp(big.NewInt(ManySets)) <= 0 || isRead(bound.Analyze(expression, asked.devices)) {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s: the search can't read the expression, so it may have to evaluate %s sets of %d devices on a node; "+
		"narrow the candidates with selectors, or write it as docs/constraints.md#what-makes-it-fast describes", where, name, number(asked.sets), asked.devices)}
}

// isRead reports whether the search can use the expression, or its first conjuncts, to rule out sets without evaluating them.
func isRead(a *bound.Analysis) bool { return a.Understood() || a.Leading(nil) != nil }

// number formats a number of sets, which may have hundreds of digits.
func number(n *big.Int) string {
	if digits := n.String(); len(digits) <= 15 {
		return digits
	}
	return new(big.Float).SetInt(n).Text('g', 3)
}
