// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/budget"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/internal/testing/policy"
)

// draft is a scenario built from the statements of a transcript. Statements are separated by newlines or semicolons. A line that
// begins with a tab continues the previous one. An expression comes last, after "if" or "=". $name is replaced by a text of
// [abbreviations].
type draft struct {
	scenario

	t *testing.T
	// limited is true if an exhaustive search may exhaust its budgets elsewhere.
	limited bool
	shows   []string
	// also is a feature that must not change the answer.
	also string
	// request is the last request or alternative, definition the last constraint defined. selectors and configs belong to the
	// current claim or class.
	request    requestParts
	definition *resourceapi.OpaqueDeviceConfiguration
	selectors  *[]resourceapi.DeviceSelector
	configure  func(resourceapi.DeviceConfiguration, ...string)
}

// requestParts holds the common fields of requests and alternatives.
type requestParts struct {
	class       *string
	mode        *resourceapi.DeviceAllocationMode
	count       *int64
	selectors   *[]resourceapi.DeviceSelector
	derived     *[]resourceapi.DeviceDerivedAttribute
	tolerations *[]resourceapi.DeviceToleration
	capacity    **resourceapi.CapacityRequirements
	admin       **bool
}

var abbreviations = map[string]string{
	"device": "device.attributes['" + driver + "']", "at": "d.attributes['" + driver + "']",
	"indices": indices, "row": inARow, "neighbors": neighbors, "unread": unread, "pairs": inPairs, "arc": inArc,
}

// given returns the scenario of statements.
func given(t *testing.T, statements string) scenario {
	t.Helper()
	return draftOf(t, strings.Split(statements, "\n")).scenario
}

func draftOf(t *testing.T, lines []string) *draft {
	t.Helper()
	d := &draft{t: t}
	for _, statement := range strings.Split(strings.ReplaceAll(strings.Join(lines, "; "), "; \t", "\n"), "; ") {
		d.add(os.Expand(strings.TrimSpace(statement), func(name string) string {
			require.Contains(t, abbreviations, name)
			return abbreviations[name]
		}))
	}
	return d
}

// add parses one statement: a keyword, words, and possibly an expression.
func (d *draft) add(statement string) {
	if statement == "" {
		return
	}
	keyword, rest, _ := strings.Cut(statement, " ")
	if keyword == "each" {
		d.each(rest)
		return
	}
	separator := " = "
	switch keyword {
	case "want", "all", "sub", "class", "if":
		separator = " if "
	}
	text, expression, hasExpression := strings.Cut(" "+rest+" ", separator)
	expression = strings.TrimSuffix(expression, " ")
	words := strings.Fields(text)
	if keyword == "if" {
		expression, hasExpression = rest, true
	}
	one := func() string {
		require.NotEmpty(d.t, words, statement)
		return words[0]
	}
	switch keyword {
	case "with", "without":
		d.scenario = d.withFeatures(func(f *structured.Features) {
			for _, name := range words {
				reflect.ValueOf(f).Elem().FieldByName(name).SetBool(keyword == "with")
			}
		})
	case "also":
		d.also = one()
	case "node":
		d.addNode(words)
	case "allocated":
		d.inUse = append(d.inUse, words...)
	case "share":
		d.addShare(words)
	case "slice":
		d.addSlice(one(), words[1:])
	case "partitioned":
		d.addSlice("counters", []string{"pool=pool-1/1/2"})
		d.addCounters(words)
		d.addSlice("devices", []string{"pool=pool-1/1/2"})
	case "counters":
		d.addCounters(words)
	case "device", "devices", "colors":
		d.addDevices(keyword, words)
	case "class":
		class := classOf(one())
		d.classes = append(d.classes, class)
		d.selectors = &class.Spec.Selectors
		d.configure = func(c resourceapi.DeviceConfiguration, _ ...string) {
			class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: c})
		}
	case "claim":
		c := claim(one())
		d.claims = append(d.claims, c)
		d.configure = func(of resourceapi.DeviceConfiguration, requests ...string) { c.configure(of, requests...) }
	case "want", "all", "first", "sub":
		d.addRequest(keyword, words)
	case "if":
	case "derive":
		*d.request.derived = append(*d.request.derived, resourceapi.DeviceDerivedAttribute{Name: attributeNamed(one()), Expression: expression})
	case "tolerate":
		d.addToleration(words)
	case "match", "distinct", "cel":
		d.addConstraint(keyword, words, expression, hasExpression)
		hasExpression = false
	case "define":
		d.define(words, expression)
	case "variable":
		d.extend(func(c *v1alpha1.CELDeviceConstraint) {
			c.Variables = append(c.Variables, v1alpha1.Variable{Name: one(), Expression: expression})
		})
	case "prefer":
		d.configure(preferenceOf(one(), expression, words[1:]...))
	case "policy":
		d.configure(keepingWhole())
	case "config":
		if !json.Valid([]byte(expression)) {
			expression = strconv.Quote(expression)
		}
		d.configure(parameters(driver, expression), words...)
	case "parameters":
		d.configure(parameters(v1alpha1.DriverName, expression), words...)
	case "option":
		d.addOption(words)
	case "show":
		d.shows = append(d.shows, words...)
	default:
		d.t.Fatalf("no such statement: %s", statement)
	}
	if separator == " if " && hasExpression {
		*d.selectors = append(*d.selectors, celSelectors([]string{expression})...)
	}
}

// each repeats a statement or the following lines for each number of a range such as 0..7. The number replaces #.
func (d *draft) each(text string) {
	from, rest, _ := strings.Cut(text, "..")
	to, statements, _ := strings.Cut(strings.Replace(rest, "\n", " ", 1), " ")
	for i := number(d.t, from); i <= number(d.t, to); i++ {
		for statement := range strings.SplitSeq(statements, "\n") {
			d.add(strings.ReplaceAll(statement, "#", strconv.FormatInt(i, 10)))
		}
	}
}

// pairsIn calls each for every word, split into name and value if it has a value.
func pairsIn(words []string, each func(name, value string, hasValue bool)) {
	for _, word := range words {
		name, value, has := strings.Cut(word, "=")
		each(name, value, has)
	}
}

func (d *draft) addRequest(keyword string, words []string) {
	requests := &d.claims[len(d.claims)-1].Spec.Devices.Requests
	name := words[0]
	switch keyword {
	case "first":
		*requests = append(*requests, resourceapi.DeviceRequest{Name: name})
		return
	case "sub":
		alternatives := &(*requests)[len(*requests)-1].FirstAvailable
		*alternatives = append(*alternatives, sub(name, 0))
		r := &(*alternatives)[len(*alternatives)-1]
		d.request = requestParts{&r.DeviceClassName, &r.AllocationMode, &r.Count, &r.Selectors, &r.DerivedAttributes, &r.Tolerations, &r.Capacity, nil}
	default:
		d.claims[len(d.claims)-1].want(name, 0)
		r := (*requests)[len(*requests)-1].Exactly
		d.request = requestParts{&r.DeviceClassName, &r.AllocationMode, &r.Count, &r.Selectors, &r.DerivedAttributes, &r.Tolerations, &r.Capacity, &r.AdminAccess}
	}
	d.selectors = d.request.selectors
	rest := words[1:]
	switch {
	case keyword == "all":
		*d.request.mode = resourceapi.DeviceAllocationModeAll
	case rest[0] == "all":
		*d.request.mode, rest = resourceapi.DeviceAllocationModeAll, rest[1:]
	default:
		*d.request.count, rest = number(d.t, rest[0]), rest[1:]
	}
	for _, word := range rest {
		name, value, has := strings.Cut(word, "=")
		capacity, amount, _ := strings.Cut(word, ":")
		switch name {
		case "class":
			*d.request.class = value
		case "admin":
			*d.request.admin = ptr.To(!has)
		case "mode":
			*d.request.mode = resourceapi.DeviceAllocationMode(value)
		case "capacity":
			*d.request.capacity = &resourceapi.CapacityRequirements{}
		default:
			*d.request.capacity = policy.Requesting(*d.request.capacity, capacity, amount)
		}
	}
}

func (d *draft) addToleration(words []string) {
	toleration := resourceapi.DeviceToleration{Operator: resourceapi.DeviceTolerationOpExists}
	pairsIn(words, func(name, value string, _ bool) {
		switch name {
		case "key":
			toleration.Key = value
		case "value":
			toleration.Operator, toleration.Value = resourceapi.DeviceTolerationOpEqual, value
		case "effect":
			toleration.Effect = resourceapi.DeviceTaintEffect(value)
		}
	})
	*d.request.tolerations = append(*d.request.tolerations, toleration)
}

// addConstraint adds a constraint for requests. A CEL constraint is also defined if there is an expression.
func (d *draft) addConstraint(keyword string, words []string, expression string, hasExpression bool) {
	c := d.claims[len(d.claims)-1]
	switch keyword {
	case "match":
		c.match(string(attributeNamed(words[0])), words[1:]...)
	case "distinct":
		c.distinct(string(attributeNamed(words[0])), words[1:]...)
	default:
		c.cel(words[0], words[1:]...)
		if hasExpression {
			d.define(words[:1], expression)
		}
	}
}

// define parses a name, and "default" or "FailurePolicy=".
func (d *draft) define(words []string, expression string) {
	of := definitionOf(words[0], expression)
	d.definition = of.Opaque
	d.configure(of)
	pairsIn(words[1:], func(name, value string, _ bool) {
		d.extend(func(c *v1alpha1.CELDeviceConstraint) {
			if name == "default" {
				c.Enforcement = v1alpha1.EnforcementAlways
			} else {
				c.FailurePolicy = v1alpha1.FailurePolicy(value)
			}
		})
	})
}

// extend changes the last definition.
func (d *draft) extend(change func(*v1alpha1.CELDeviceConstraint)) {
	var c v1alpha1.CELDeviceConstraint
	require.NoError(d.t, json.Unmarshal(d.definition.Parameters.Raw, &c))
	change(&c)
	raw, err := json.Marshal(c)
	require.NoError(d.t, err)
	d.definition.Parameters.Raw = raw
}

func (d *draft) addOption(words []string) {
	preferences := budget.PreferencesOnNode(DefaultBudget())
	preferenceCost, preferenceSteps := preferences.Cost, preferences.Steps
	var shapes []Shape
	pairsIn(words, func(name, value string, _ bool) {
		var option Option
		switch name {
		case "cost":
			d.limited, option = true, WithCostBudget(uint64(number(d.t, value)))
		case "steps":
			d.limited, option = true, WithStepBudget(number(d.t, value))
		case "preference-cost", "preference-steps":
			if name == "preference-cost" {
				preferenceCost = uint64(number(d.t, value))
			} else {
				preferenceSteps = number(d.t, value)
			}
			d.limited, option = true, WithPreferenceBudget(preferenceCost, preferenceSteps)
		case "cost-limit":
			option = WithEnvironment(environmentWith(d.t, cel.Config{CostLimit: uint64(number(d.t, value))}))
		case "large": // too large for the exhaustive search
			d.limited = true
			return
		case "without-cel":
			option = WithoutCELConstraints()
		case "without-defaults":
			option = WithoutDefaultConstraints()
		case "without-preferences":
			option = WithoutPreferences()
		case "keep-whole":
			option = WithDefaultPreference(v1alpha1.PolicyKeepWhole)
		case "shape":
			of := strings.Split(value, "/")
			shapes = append(shapes, Shape{Class: of[0], Constraint: of[1], Count: int(number(d.t, of[2]))})
			option = WithShapes(shapes)
		default:
			d.t.Fatalf("no such option: %s", name)
		}
		d.opts = append(d.opts, option)
	})
}

func number(t *testing.T, text string) int64 {
	result, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return result
}
