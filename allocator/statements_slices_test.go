// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/testing/policy"
)

// addNode adds a node with labels, optionally with values, and with declared features.
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

// nodeSelector parses labels, or terms as JSON without spaces.
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

// addCounters parses words like set{counter=amount,...}.
func (d *draft) addCounters(words []string) {
	s := d.lastSlice()
	for _, word := range words {
		name, counters, _ := countersIn(d.t, word)
		s.Spec.SharedCounters = append(s.Spec.SharedCounters, resourceapi.CounterSet{Name: name, Counters: counters.counters()})
	}
}

// countersIn parses set{counter=amount,...}[group,...].
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

// addDevices adds one device, or a number of devices with # for their index, or a, b, c with colors.
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
	d.each("0.." + strconv.FormatInt(number(d.t, words[0])-1, 10) + " device " + strings.Join(words[1:], " "))
}

// device parses attributes like index=1, capacities like memory:1Gi(default=1), counters like gpu{memory=1}[group], and options
// like +shared or +taint=NoSchedule.
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

// policyIn returns nil for an empty text.
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

// attributeIn returns an int, a bool, a list or a string if the text is JSON. A text after "v:" is a list with a version, "?" is
// an unknown type, and any other text is a string.
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

// attributeNamed adds the domain of the driver unless the name has a domain.
func attributeNamed(name string) resourceapi.FullyQualifiedName {
	if strings.Contains(name, "/") {
		return resourceapi.FullyQualifiedName(name)
	}
	return resourceapi.FullyQualifiedName(driver + "/" + name)
}
