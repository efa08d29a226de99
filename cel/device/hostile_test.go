// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/corpus"
)

// doubled returns an expression with sixty nested bindings. Each binding contains the previous one twice.
func doubled(first, twice, in string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "cel.bind(a0, %s, ", first)
	for i := 1; i <= 60; i++ {
		fmt.Fprintf(&text, "cel.bind(a%d, %s, ", i, strings.ReplaceAll(twice, "$", fmt.Sprintf("a%d", i-1)))
	}
	text.WriteString(strings.ReplaceAll(in, "$", "a60"))
	return text.String() + strings.Repeat(")", 61)
}

// hostile has expressions that would use up time or memory, because CEL charges little for them.
var hostile = map[string]string{
	"replace in replace":   `'` + strings.Repeat("a", 4000) + `'.replace('', '` + strings.Repeat("a", 4000) + `').replace('', '` + strings.Repeat("b", 1000) + `').size() > 1`,
	"a long range":         "lists.range(900000).distinct().size() > 1",
	"a longer range":       "lists.range(900000000000).size() > 1",
	"ranges of ranges":     "lists.range(1000).all(i, lists.range(1000).all(j, lists.range(1000).size() > 1))",
	"an exponent":          "quantity('1e2000000000').isGreaterThan(quantity('1'))",
	"a negative exponent":  "quantity('1e-2000000000').isGreaterThan(quantity('1'))",
	"many digits":          "quantity('" + strings.Repeat("9", 9000) + "').isGreaterThan(quantity('1e-2000'))",
	"a counted repetition": "devices[0].driver.matches('((((a{10}){10}){10}){10}){10}')",
	"a computed pattern":   "lists.range(1000).all(i, devices[0].driver.matches('(a{' + string(i) + '}){' + string(i) + '}'))",
	"many classes":         `devices[0].driver.matches('` + strings.Repeat(`\\pL`, 1500) + `')`,
	"texts by format":      "'%.900000000f'.format([1.5]).size() > 1",
	"lists by format":      "lists.range(3000).map(i, '%s'.format([lists.range(3000)])).size() > 1",
	"split and join":       "lists.range(3000).all(i, '" + strings.Repeat("a", 3000) + "'.split('').join('" + strings.Repeat("b", 1000) + "').size() > 1)",
	"flat and flatter":     "lists.range(300).map(i, lists.range(300).map(j, lists.range(300))).flatten(3).size() > 1",
	"a product of strings": "'" + strings.Repeat("a", 4000) + "'.indexOf('" + strings.Repeat("a", 2000) + "b') == lists.range(3000).map(i, '" + strings.Repeat("a", 1000) + "'.indexOf('b')).sum()",
	"zones":                "lists.range(100000).all(i, timestamp('2026-01-01T00:00:00Z').getHours('America/New_York') > 0)",
	"characters":           "lists.range(100000).all(i, '" + strings.Repeat("ä", 4000) + "'.charAt(i % 4000) == 'ä')",
	"sizes":                "lists.range(100000).all(i, '" + strings.Repeat("ä", 4000) + "'.size() == 4000)",
	"numbers from texts":   "lists.range(100000).all(i, dyn('" + strings.Repeat("1", 4000) + "') == i || isQuantity('" + strings.Repeat("1", 4000) + "'))",
	"long versions":        "lists.range(100000).all(i, semver('1.0.0-" + strings.Repeat("a", 4000) + "') == semver('1.0.0-" + strings.Repeat("a", 4000) + "'))",
	"all findings":         "lists.range(1000).all(i, '" + strings.Repeat("a", 4000) + "'.findAll('(a*b)?').size() > 1)",
	"sets of lists":        "sets.contains(lists.range(3000).map(i, [i]), lists.range(3000).map(i, [-1 - i]))",
	"members":              "lists.range(3000).all(i, !([i] in lists.range(3000).map(j, [j + 3000])))",
	"lists, doubled":       doubled("[1]", "[$, $]", "$ == $"),
	"unequal, doubled":     doubled("[1]", "[$, $]", "[$] != [[$]]"),
	"in, doubled":          doubled("[[1]]", "[$, $]", "$ in [$]"),
	"index, doubled":       doubled("[dyn([1])]", "[dyn($), dyn($)]", "$.indexOf($) == 0"),
	"distinct, doubled":    doubled("[dyn([1])]", "[dyn($), dyn($)]", "$.distinct() == []"),
	"flatten, doubled":     doubled("[dyn(1)]", "[dyn($), dyn($)]", "$.flatten(60) == []"),
	"format, doubled":      doubled("[dyn(1)]", "[dyn($), dyn($)]", "'%s'.format([$]) == ''"),
	"maps, doubled":        doubled("{1: dyn(1)}", "{1: dyn($), 2: dyn($)}", "$ == $"),
	"optional, doubled":    doubled("optional.of([dyn(1)])", "optional.of([dyn($), dyn($)])", "$ == $"),
	"concatenation":        doubled("[1]", "$ + $", "$.all(x, x == 1)"),
	"texts, doubled":       doubled("'a'", "$ + $", "$.size() == 1"),
	"bytes, doubled":       doubled("b'a'", "$ + $", "$.size() == 1"),
	"an error, doubled":    doubled("[dyn(1)]", "[dyn($), dyn($)]", "{dyn(1): true}[$]"),
	"a text as error":      doubled("'a'", "$ + $", "{'a': true}[$]"),
	"entries, doubled":     doubled("[1]", "[$, $]", "[1, 2].transformMapEntry(i, v, {dyn($): 1}).size() == 1"),
}

// TestHostileExpressions checks that each expression ends within its memory limit, with a verdict or an error that states the
// exceeded limit.
func TestHostileExpressions(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	set := []*device.Device{device.New("d.example.com", &resourceapi.Device{})}
	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			expression, err := environment.Compile(t.Context(), text)
			if err == nil {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err = expression.Satisfied(context.Background(), set, cel.NewBudget(10_000_000))
				runtime.ReadMemStats(&after)
				// TotalAlloc also counts freed memory, and the race detector allocates more. One unit of cost may allocate some
				// tens of bytes.
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(512<<20))
			}
			if failure, isError := errors.AsType[*cel.Error](err); isError {
				require.Less(t, len(failure.Error()), 64<<10)
			}
		})
	}
}

// TestContextIsHonoured checks that an evaluation stops when its context has ended, even if the expression has no loop.
func TestContextIsHonoured(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, text := range []string{
		"lists.range(20000).isSorted()", "lists.range(600).distinct().size() == 600",
		"lists.range(900).all(i, i >= 0)", "'" + strings.Repeat("a", 4000) + "'.findAll('a').size() == 4000",
	} {
		expression, err := environment.Compile(t.Context(), text)
		require.NoError(t, err)
		_, err = expression.Satisfied(t.Context(), nil, nil)
		require.NoError(t, err, text)
		_, err = expression.Satisfied(ended, nil, nil)
		require.ErrorIs(t, err, context.Canceled, text)
	}
}

func estimate(t *testing.T, expression string, devices int) uint64 {
	t.Helper()
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	compiled, err := environment.Compile(t.Context(), expression)
	require.NoError(t, err)
	cost, err := compiled.EstimateCost(devices)
	require.NoError(t, err)
	return cost
}

// TestEstimateGrowsWithTheSet checks how fast the estimate for nested loops grows with the size of the set.
func TestEstimateGrowsWithTheSet(t *testing.T) {
	for expression, degree := range map[string]int{
		"devices.size() == 4":                                                                0,
		"devices.all(d, d.driver == 'a')":                                                    1,
		"devices.all(d, devices.exists(o, d == o))":                                          2,
		"devices.map(d, d.attributes['a'].x).max() == 3":                                     1,
		"devices.all(d, devices.all(e, devices.all(f, d != e || f.driver == 'a')))":          3,
		"cel.bind(all, devices, all.all(d, d.capacity['a'].b.isGreaterThan(quantity('1'))))": 1,
	} {
		few, many := estimate(t, expression, 100), estimate(t, expression, 200)
		require.InDelta(t, math.Pow(2, float64(degree)), float64(many)/float64(few), 0.25, expression)
		require.Positive(t, estimate(t, expression, 0))
		require.Equal(t, estimate(t, expression, 0), estimate(t, expression, -1))
	}
}

// TestEstimateKnowsTheLimitsOfTheAPI checks that the estimator has a size for every part of a device.
func TestEstimateKnowsTheLimitsOfTheAPI(t *testing.T) {
	for _, expression := range []string{
		"devices.all(d, d.driver.contains('a'))",
		"devices.all(d, d.attributes['a'].text.matches('[a-z]*'))",
		"devices.all(d, d.attributes.exists(domain, domain.contains('a')))",
		"devices.all(d, d.attributes['a'].exists(id, id.startsWith('a')))",
		"devices.all(d, d.attributes['a'].list.exists(x, x == 'a'))",
		"devices.all(d, d.attributes['a'].text.split(',').exists(x, x == 'a'))",
		"devices.all(d, d.capacity['a'].exists(id, d.capacity['a'][id].isInteger()))",
		"devices.map(d, d.attributes['a'].x).sum() == 3 && devices.map(d, d.driver).sort()[0] == 'a'",
		"devices.map(d, d.allowMultipleAllocations).isSorted()",
		"devices.filter(d, d.attributes['a']['x'] == 1).map(d, [d.driver]).flatten().distinct().size() == 1",
	} {
		require.Less(t, estimate(t, expression, 4), cel.DefaultCostLimit, expression)
	}
	require.Greater(t, estimate(t, "devices.all(a, devices.all(b, devices.all(c, devices.all(d, devices.all(e, a == b || c == d || e == a)))))", 32), cel.DefaultCostLimit)
}

// TestEstimateIsAnUpperBound evaluates the expressions of the corpus on sets of their hardware, and compares costs with
// estimates.
func TestEstimateIsAnUpperBound(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	for _, e := range corpus.Expressions() {
		compiled, err := environment.Compile(t.Context(), e.Text)
		require.NoError(t, err)
		for _, set := range setsOf(e) {
			bound, err := compiled.EstimateCost(len(set))
			require.NoError(t, err)
			budget := cel.NewBudget(math.MaxUint64)
			_, err = compiled.Satisfied(t.Context(), set, budget)
			require.NoError(t, err)
			require.LessOrEqual(t, budget.Spent(), bound, e.Name)
		}
	}
}

// setsOf returns sets of consecutive devices, as many devices as each request of the expression asks for.
func setsOf(e corpus.Expression) [][]*device.Device {
	devices := map[string][]*device.Device{}
	for _, d := range e.Hardware.Devices() {
		devices[d.Driver] = append(devices[d.Driver], device.New(d.Driver, &d.Device))
	}
	var result [][]*device.Device
	for shift := range 9 {
		var set []*device.Device
		taken := map[string]int{}
		for _, r := range e.Requests {
			all := devices[r.Driver]
			for range r.Count {
				set = append(set, all[(shift+taken[r.Driver])%len(all)])
				taken[r.Driver]++
			}
		}
		result = append(result, set)
	}
	return result
}
