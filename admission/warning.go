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

// Warnings reach the user in headers: the API server cuts those that are longer than
// about 250 characters when there are many.

// defaultWarning is about a constraint that a scheduler which does not know it ignores, where it
// would fail closed if a claim referred to it.
func defaultWarning(definition v1alpha1.Definition) []string {
	if definition.Enforcement != v1alpha1.EnforcementAlways {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s is a default: schedulers without celset ignore it and allocate any devices; "+
		"safe only where celset-scheduler schedules all pods that use the class (docs/constraints.md#defaults-of-a-class)", definition.Source.Field, definition.Name)}
}

// orderWarning is about an expression whose result, a verdict or a value, speaks of the order of the
// devices.
func orderWarning(where, name, result string, expression *device.Expression) []string {
	place, found := expression.OrderDependence()
	if !found {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s, line %d, column %d: the %s may depend on the order of the devices; "+
		"a set is evaluated in one order only, that of the requests and the pools", where, name, place.Line, place.Column, result)}
}

// suspicionWarnings are about parts of an expression whose result does not depend on the devices as it seems to.
func suspicionWarnings(where, name string, expression *device.Expression) []string {
	var result []string
	for _, found := range expression.Suspicions() {
		result = append(result, fmt.Sprintf("%s: %s, line %d, column %d: %s", where, name, found.Line, found.Column, found.Message))
	}
	return result
}

// costWarning is about an expression of which one evaluation may cross the limit.
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

// setsWarning is about an expression that is evaluated on set after set.
func setsWarning(where, name string, expression *device.Expression, asked demand) []string {
	if asked.sets.Cmp(big.NewInt(ManySets)) <= 0 || isRead(bound.Analyze(expression, asked.devices)) {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s: the search can't read the expression, and may have %s sets of %d devices to try on a node; "+
		"narrow the candidates with selectors, or write it as docs/constraints.md says", where, name, number(asked.sets), asked.devices)}
}

// isRead tells whether the search may leave sets out because of the expression, or its first conjuncts.
func isRead(a *bound.Analysis) bool { return a.Understood() || a.Leading(nil) != nil }

// number of sets, which may have hundreds of digits.
func number(n *big.Int) string {
	if digits := n.String(); len(digits) <= 15 {
		return digits
	}
	return new(big.Float).SetInt(n).Text('g', 3)
}
