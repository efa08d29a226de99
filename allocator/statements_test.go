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
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/internal/testing/policy"
)

// draft is a scenario that statements of a transcript are added to. A statement is a line, or what
// stands between semicolons; lines that begin with a tab continue the one before. An expression
// comes last, after "if" or "=". $name stands for a text of [abbreviations].
type draft struct {
	scenario

	t *testing.T
	// limited: another search may use up budgets somewhere else.
	limited bool
	shows   []string
	// request is the request or alternative that was added last, definition what defines a
	// constraint last. selectors and configs are those of the claim or class at hand.
	request    requestParts
	definition *resourceapi.OpaqueDeviceConfiguration
	selectors  *[]resourceapi.DeviceSelector
	configure  func(resourceapi.DeviceConfiguration, ...string)
}

// requestParts are what requests and alternatives have in common.
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

// given is the scenario of statements.
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

// add is one statement: a keyword, words, and an expression or none.
func (d *draft) add(statement string) {
	if statement == "" {
		return
	}
	keyword, rest, _ := strings.Cut(statement, " ")
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

// pairs calls with the words that are a name and a value, and those without a value.
func pairsIn(words []string, each func(name, value string, hasValue bool)) {
	for _, word := range words {
		name, value, has := strings.Cut(word, "=")
		each(name, value, has)
	}
}

// labels stand alone, have a value, or are a feature that the node declares.
func (d *draft) addNode(words []string) {
	d.node = newNode(words[0])
	pairsIn(words[1:], func(name, value string, has bool) {
		switch {
		case name == "declares":
			d.node.Status.DeclaredFeatures = append(d.node.Status.DeclaredFeatures, value)
		case has:
			d.node.Labels[name] = value
		default:
			d.node.Labels[name] = "true"
		}
	})
}

func (d *draft) addShare(words []string) {
	s := share{device: words[0]}
	pairsIn(words[1:], func(name, value string, has bool) {
		if !has {
			s.unnamed = name == "unnamed"
			return
		}
		if s.consumed == nil {
			s.consumed = map[string]string{}
		}
		s.consumed[name] = value
	})
	d.shares = append(d.shares, s)
}

func (d *draft) addSlice(name string, words []string) {
	s := slice(name)
	d.slices = append(d.slices, s)
	pairsIn(words, func(name, value string, _ bool) {
		switch name {
		case "driver":
			s.driver(value)
		case "pool":
			of := strings.Split(value+"/1/1", "/")
			s.pool(of[0], number(d.t, of[1]), number(d.t, of[2]))
		case "node":
			s.onNode(value)
		case "nodes":
			s.Spec.NodeName, s.Spec.NodeSelector = nil, d.nodeSelector(value)
		case "everywhere":
			s.everywhere()
		case "nowhere":
			s.Spec.NodeName = nil
		case "per-device":
			s.perDevice()
		case "skips":
			s.Spec.SkipNodeOperations = append(s.Spec.SkipNodeOperations, resourceapi.SkipNodeOperation(value))
		default:
			d.t.Fatalf("slices have no %q", name)
		}
	})
}

// nodeSelector has labels, or terms as JSON without spaces.
func (d *draft) nodeSelector(text string) *v1.NodeSelector {
	if !strings.HasPrefix(text, "[") {
		return nodesWith(strings.Split(text, ",")...)
	}
	selector := &v1.NodeSelector{}
	require.NoError(d.t, json.Unmarshal([]byte(text), &selector.NodeSelectorTerms))
	return selector
}

func (d *draft) lastSlice() *sliceBuilder {
	if len(d.slices) == 0 {
		d.addSlice("1", nil)
	}
	return d.slices[len(d.slices)-1]
}

// set{counter=amount,...}
func (d *draft) addCounters(words []string) {
	s := d.lastSlice()
	for _, word := range words {
		name, counters, _ := countersIn(d.t, word)
		s.Spec.SharedCounters = append(s.Spec.SharedCounters, resourceapi.CounterSet{Name: name, Counters: counters.counters()})
	}
}

// countersIn reads set{counter=amount,...}[group,...].
func countersIn(t *testing.T, word string) (set string, counters amounts, groups []string) {
	set, rest, found := strings.Cut(word, "{")
	inner, after, closed := strings.Cut(rest, "}")
	require.True(t, found && closed, word)
	counters = amounts{}
	for _, one := range strings.Split(inner, ",") {
		name, amount, _ := strings.Cut(one, "=")
		counters[name] = amount
	}
	if after != "" {
		groups = strings.Split(strings.Trim(after, "[]"), ",")
	}
	return set, counters, groups
}

// addDevices adds one device, or a number of them with # for their index, or a, b, c with colors.
func (d *draft) addDevices(keyword string, words []string) {
	s := d.lastSlice()
	if keyword == "device" {
		s.Spec.Devices = append(s.Spec.Devices, d.device(words))
		return
	}
	if keyword == "colors" {
		for i, color := range words {
			of := []string{string(rune('a' + i))}
			if color != "-" {
				of = append(of, "color="+color)
			}
			s.Spec.Devices = append(s.Spec.Devices, d.device(of))
		}
		return
	}
	for i := range number(d.t, words[0]) {
		s.Spec.Devices = append(s.Spec.Devices, d.device(strings.Fields(strings.ReplaceAll(strings.Join(words[1:], " "), "#", strconv.FormatInt(i, 10)))))
	}
}

// device has attributes like index=1, capacities like memory:1Gi(default=1), counters like
// gpu{memory=1}[group], and the rest like +shared or +taint=NoSchedule.
func (d *draft) device(words []string) resourceapi.Device {
	result := newDevice(words[0], nil)
	for _, word := range words[1:] {
		switch {
		case strings.HasPrefix(word, "+"):
			name, value, _ := strings.Cut(word[1:], "=")
			d.mark(&result, name, value)
		case strings.Contains(word, "{"):
			set, counters, groups := countersIn(d.t, word)
			consuming(set, counters, groups...)(&result)
		case strings.Contains(word, ":") && !strings.Contains(word, "="), strings.Contains(word, "("):
			name, rest, _ := strings.Cut(word, ":")
			amount, allowed, _ := strings.Cut(strings.TrimSuffix(rest, ")"), "(")
			policy.Having(name, amount, policyIn(allowed))(&result)
		default:
			name, value, _ := strings.Cut(word, "=")
			id := resourceapi.QualifiedName(name)
			result.Attributes[id] = newDevice("", attrs{id: attributeIn(value)}).Attributes[id]
		}
	}
	return result
}

func (d *draft) mark(of *resourceapi.Device, name, value string) {
	switch name {
	case "shared":
		shared(of)
	case "taint":
		of.Taints = append(of.Taints, resourceapi.DeviceTaint{Key: "sick", Value: "very", Effect: resourceapi.DeviceTaintEffect(value)})
	case "binding":
		of.BindingConditions = []string{value}
	case "failing":
		of.BindingFailureConditions = []string{value}
	case "binds":
		of.BindsToNode = ptr.To(true)
	case "everywhere":
		onAny(of)
	case "node":
		of.NodeName = &value
	case "nodes":
		of.NodeSelector = d.nodeSelector(value)
	default:
		d.t.Fatalf("devices are not %q", name)
	}
}

// policyIn is nil for nothing.
func policyIn(text string) *resourceapi.CapacityRequestPolicy {
	if text == "" {
		return nil
	}
	of := map[string]string{}
	pairsIn(strings.Split(text, ","), func(name, value string, _ bool) { of[name] = value })
	result := &resourceapi.CapacityRequestPolicy{Default: policy.Quantity(of["default"])}
	if of["min"]+of["max"]+of["step"] != "" {
		result.ValidRange = policy.Range(of["min"], of["max"], of["step"]).ValidRange
	}
	if of["oneof"] != "" {
		result.ValidValues = policy.OneOf(strings.Split(of["oneof"], "|")...).ValidValues
	}
	return result
}

// attributeIn is an int, a bool, a list or a string if the text is one in JSON, a list with a version
// after "v:", unknown for "?", else a string.
func attributeIn(text string) any {
	version, isVersion := strings.CutPrefix(text, "v:")
	switch {
	case text == "?":
		return resourceapi.DeviceAttribute{}
	case isVersion:
		return resourceapi.DeviceAttribute{VersionValues: []string{version}}
	}
	for _, value := range []any{new(int), new(bool), new(string), new([]string), new([]int64), new([]bool)} {
		if json.Unmarshal([]byte(text), value) == nil {
			return reflect.ValueOf(value).Elem().Interface()
		}
	}
	return text
}

// attributeNamed adds the domain of the driver.
func attributeNamed(name string) resourceapi.FullyQualifiedName {
	if strings.Contains(name, "/") {
		return resourceapi.FullyQualifiedName(name)
	}
	return resourceapi.FullyQualifiedName(driver + "/" + name)
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

// addConstraint adds a constraint for requests. One in CEL is defined beside it if there is an expression.
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

// define has a name, and "default" or "onError=".
func (d *draft) define(words []string, expression string) {
	of := definitionOf(words[0], expression)
	d.definition = of.Opaque
	d.configure(of)
	pairsIn(words[1:], func(name, value string, _ bool) {
		d.extend(func(c *v1alpha1.CELDeviceConstraint) {
			if name == "default" {
				c.Default = true
			} else {
				c.OnError = v1alpha1.OnError(value)
			}
		})
	})
}

// extend changes what was defined last.
func (d *draft) extend(change func(*v1alpha1.CELDeviceConstraint)) {
	var c v1alpha1.CELDeviceConstraint
	require.NoError(d.t, json.Unmarshal(d.definition.Parameters.Raw, &c))
	change(&c)
	raw, err := json.Marshal(c)
	require.NoError(d.t, err)
	d.definition.Parameters.Raw = raw
}

func (d *draft) addOption(words []string) {
	preferenceCost, preferenceSteps := uint64(DefaultPreferenceCostBudget), DefaultPreferenceStepBudget
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
		case "large": // for the exhaustive search
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
			shapes = append(shapes, Shape{of[0], of[1], int(number(d.t, of[2]))})
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
