// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/corpus"
	"github.com/celset/celset/internal/testing/randomexpr"
)

// world is a claim together with all device classes that exist.
type world struct {
	claim   *resourceapi.ResourceClaim
	classes fakeClasses
}

// The lists of names are short, so that a reference often has the name of a definition.
var (
	definitionNames = []string{"a", "a", "b", "ring4", "", "4", "a b", "A", "é", strings.Repeat("n", 33), "celset.dev/a"}
	requestNames    = []string{"r", "s", "r/x", "s/y", "", "unknown"}
	classNames      = []string{"mla", "gpu", "broken", "missing", "unreadable", ""}
)

// seeds are parameters from the tests of package apis/celset/v1alpha1.
var seeds = []string{
	``, `{}`, `[]`, `null`, `"`, `"true"`, `3`, `{"kind":1}`, `{"a\nb":{"c":[1,2]}}`, "\xff\xfe", `{"apiVersion":`,
	`{"apiVersion":"celset.dev/v2","kind":"CELDeviceConstraint","expressions":["a"]}`,
	`{"apiVersion":"celset.dev/v1alpha1","kind":"Ring","size":4}`,
	`{"name":"ring4","expression":"true"}`,
	`{"apiVersion":"celset.dev/v1alpha1","Kind":"CELDeviceConstraint"}`,
	`{"apiVersion":"celset.dev/v1alpha1","kind":"CELDeviceConstraint","name":"a","expresion":"true"}`,
	`{"apiVersion":"celset.dev/v1alpha1","kind":"CELDeviceConstraint","name":"a","name":"b"}`,
	`{"apiVersion":"celset.dev/v1alpha1","kind":"CELDeviceConstraint","name":"a","expression":["true"]}`,
	`{"apiVersion":"celset.dev/v1alpha1","kind":"CELDeviceConstraint","name":"\ud800","expression":"\u0000"}`,
	`{"apiVersion":"celset.dev/v1alpha1","kind":"CELDeviceConstraint","name":"a","NAME":"b","name":null}`,
	`{"apiVersion":"celset.dev/v1alpha1","kind":"CELDeviceConstraint","name":"a","expression":"true"}{}`,
	strings.Repeat(`{"a":`, 5000) + `1` + strings.Repeat(`}`, 5000),
}

// oddities are unusual expressions.
var oddities = []string{
	"", " ", "\n", "true", "false", "1", "dyn(1)", "devices", "devices[0]", "devices.size", "[?dyn(1)]", "{?'a': 1}", "\x00", "\xff", "'", "\"\"\"", "//",
	"devices.all(devices, devices)", "devices.all(d, true) && __result__", "type(devices) == list", "devices == devices", "devices.map(d, devices)[0] == devices",
	"devices.exists(d, d.attributes['a'].b.c.d.e[0]['f'] == dyn(d))", "duration('x') == duration('1s')", "'a'.matches('[')", "optional.none().hasValue()",
	"cel.bind(x, devices, cel.bind(y, x, cel.bind(x, y[0], x == y[1])))", "9223372036854775808 > 0", "1 / 0 == 1", "int('a') == 1",
	strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500), strings.Repeat("!", 3000) + "true", strings.Repeat("true && ", 1200) + "true",
	strings.Repeat("[", 200) + strings.Repeat("]", 200) + " == []", strings.Repeat("devices.all(d, ", 40) + "true" + strings.Repeat(")", 40),
	strings.Repeat("a", 10*1024), strings.Repeat("a", 10*1024+1), "'" + strings.Repeat("é", 6*1024) + "' == ''",
}

var attributes = randomexpr.Attributes{
	Domain: "mla.example.com", Ints: []string{"row", "col", "index"}, String: "kind", Strings: "peers", Version: "firmware",
	Bool: "healthy", Capacity: "memory", Drivers: []string{"mla.example.com", "gpu.example.com"},
}

var written = corpus.Expressions()

// expressionGen draws expressions: real, random, unusual and damaged ones.
func expressionGen() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 5).Draw(t, "source") {
		case 0, 1:
			return rapid.SampledFrom(written).Draw(t, "written").Text
		case 2:
			return randomexpr.Condition(t, attributes)
		case 3:
			return rapid.SampledFrom(oddities).Draw(t, "odd")
		case 4:
			return damaged(t, rapid.SampledFrom(written).Draw(t, "written").Text)
		default:
			return rapid.String().Draw(t, "text")
		}
	})
}

// valueGen draws expressions of preferences. Most of them turn a condition into an int.
func valueGen() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		text := expressionGen().Draw(t, "expression")
		if rapid.IntRange(0, 7).Draw(t, "as it is") == 0 {
			return text
		}
		return "(" + text + ") ? devices.size() : -1"
	})
}

// damaged replaces, removes or repeats a few ranges of a text.
func damaged(t *rapid.T, text string) string {
	for range rapid.IntRange(1, 3).Draw(t, "damages") {
		from := rapid.IntRange(0, len(text)).Draw(t, "from")
		to := min(len(text), from+rapid.IntRange(0, 12).Draw(t, "length"))
		with := rapid.SampledFrom([]string{"", "", text[from:to] + text[from:to], "(", ")", "'", ".", "[0]", "==", "d", "\"", "{", "\\", "\xc3"}).Draw(t, "with")
		text = text[:from] + with + text[to:]
	}
	return text
}

// parametersGen draws the parameters of definitions. Most of them are well-formed JSON.
func parametersGen() *rapid.Generator[runtime.RawExtension] {
	return rapid.Custom(func(t *rapid.T) runtime.RawExtension {
		if rapid.IntRange(0, 5).Draw(t, "seed") == 0 {
			return runtime.RawExtension{Raw: []byte(rapid.SampledFrom(seeds).Draw(t, "raw"))}
		}
		fields := map[string]any{
			"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint",
			"name":       rapid.SampledFrom(definitionNames).Draw(t, "name"),
			"expression": expressionGen().Draw(t, "expression"),
		}
		if rapid.IntRange(0, 4).Draw(t, "preference") == 0 {
			fields["kind"], fields["type"], fields["expression"] = "CELDevicePreference", "Expression", valueGen().Draw(t, "value")
			if rapid.IntRange(0, 3).Draw(t, "requests") == 0 {
				fields["requests"] = rapid.SliceOfN(rapid.SampledFrom(requestNames), 0, 2).Draw(t, "requests")
			}
		} else if rapid.IntRange(0, 9).Draw(t, "enforcement") == 0 {
			fields["enforcement"] = "Always"
		}
		if rapid.IntRange(0, 7).Draw(t, "change") == 0 {
			key := rapid.SampledFrom([]string{"apiVersion", "kind", "name", "expression", "enforcement", "default", "Expression", "extra"}).Draw(t, "key")
			fields[key] = rapid.SampledFrom([]any{nil, 1, true, "", "x", []any{}, map[string]any{"a": "b"}}).Draw(t, "value")
		}
		raw, err := json.Marshal(fields)
		if err != nil {
			panic(err)
		}
		if rapid.IntRange(0, 15).Draw(t, "damage") == 0 {
			raw = []byte(damaged(t, string(raw)))
		}
		return runtime.RawExtension{Raw: raw}
	})
}

func configurationGen() *rapid.Generator[resourceapi.DeviceConfiguration] {
	return rapid.Custom(func(t *rapid.T) resourceapi.DeviceConfiguration {
		switch rapid.IntRange(0, 9).Draw(t, "configuration") {
		case 0:
			return resourceapi.DeviceConfiguration{}
		case 1:
			return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: "mla.example.com"}}
		case 2:
			return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: "celset.dev"}}
		default:
			return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: "celset.dev", Parameters: parametersGen().Draw(t, "parameters")}}
		}
	})
}

func requestGen() *rapid.Generator[resourceapi.DeviceRequest] {
	mode := rapid.SampledFrom([]resourceapi.DeviceAllocationMode{"ExactCount", "ExactCount", "All", "", "Some"})
	count := rapid.SampledFrom([]int64{1, 2, 3, 4, 8, 31, 33, 0, -1, 1 << 62})
	return rapid.Custom(func(t *rapid.T) resourceapi.DeviceRequest {
		request := resourceapi.DeviceRequest{Name: rapid.SampledFrom([]string{"r", "s"}).Draw(t, "name")}
		if kind := rapid.IntRange(0, 9).Draw(t, "kind"); kind < 7 {
			request.Exactly = &resourceapi.ExactDeviceRequest{
				DeviceClassName: rapid.SampledFrom(classNames).Draw(t, "class"), AllocationMode: mode.Draw(t, "mode"), Count: count.Draw(t, "count"),
			}
			if rapid.IntRange(0, 15).Draw(t, "derived") == 0 {
				request.Exactly.DerivedAttributes = []resourceapi.DeviceDerivedAttribute{{Name: "celset.dev/a"}}
			}
		} else if kind < 9 {
			for _, name := range []string{"x", "y"} {
				request.FirstAvailable = append(request.FirstAvailable, resourceapi.DeviceSubRequest{
					Name: name, DeviceClassName: rapid.SampledFrom(classNames).Draw(t, "class"), AllocationMode: mode.Draw(t, "mode"), Count: count.Draw(t, "count"),
				})
			}
		}
		return request
	})
}

func constraintGen() *rapid.Generator[resourceapi.DeviceConstraint] {
	return rapid.Custom(func(t *rapid.T) resourceapi.DeviceConstraint {
		name := ptr.To(resourceapi.FullyQualifiedName(rapid.SampledFrom([]string{"celset.dev/", "celset.dev/", "celset.dev/", "celset.dev", "a.example.com/", ""}).Draw(t, "domain") +
			rapid.SampledFrom(definitionNames).Draw(t, "name")))
		result := resourceapi.DeviceConstraint{MatchAttribute: name}
		switch rapid.IntRange(0, 15).Draw(t, "form") {
		case 0:
			result = resourceapi.DeviceConstraint{DistinctAttribute: name}
		case 1:
			result.DistinctAttribute = name
		case 2:
			result.MatchAttribute = nil
		}
		if rapid.Bool().Draw(t, "covers") {
			result.Requests = rapid.SliceOfN(rapid.SampledFrom(requestNames), 0, 2).Draw(t, "requests")
		}
		return result
	})
}

// worldGen draws a claim and classes. Most claims have a mistake, and some are realistic.
func worldGen() *rapid.Generator[world] {
	return rapid.Custom(func(t *rapid.T) world {
		w := world{claim: &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim"}}, classes: fakeClasses{"unreadable": nil}}
		for _, name := range []string{"mla", "gpu", "broken"} {
			w.classes[name] = &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
		devices := &w.claim.Spec.Devices
		if rapid.IntRange(0, 2).Draw(t, "usual") == 0 {
			usual(t, devices)
			return w
		}
		for _, name := range []string{"mla", "broken"} {
			for _, configuration := range rapid.SliceOfN(configurationGen(), 0, 2).Draw(t, name) {
				w.classes[name].Spec.Config = append(w.classes[name].Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: configuration})
			}
		}
		w.classes["gpu"].Spec.Config = slices.Clone(w.classes["mla"].Spec.Config)
		devices.Requests = rapid.SliceOfN(requestGen(), 0, 3).Draw(t, "requests")
		devices.Constraints = rapid.SliceOfN(constraintGen(), 0, 3).Draw(t, "constraints")
		for _, configuration := range rapid.SliceOfN(configurationGen(), 0, 3).Draw(t, "config") {
			devices.Config = append(devices.Config, resourceapi.DeviceClaimConfiguration{DeviceConfiguration: configuration})
		}
		return w
	})
}

// usual adds a reference to the claim. The claim itself defines the constraint, or the class is missing or can't be read.
func usual(t *rapid.T, devices *resourceapi.DeviceClaim) {
	e := rapid.SampledFrom(written).Draw(t, "written")
	text := e.Text
	if rapid.Bool().Draw(t, "damaged") {
		text = damaged(t, text)
	}
	for i, r := range e.Requests {
		devices.Requests = append(devices.Requests, resourceapi.DeviceRequest{Name: fmt.Sprintf("r%d", i), Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: "mla", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(r.Count),
		}})
	}
	devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: ptr.To(resourceapi.FullyQualifiedName("celset.dev/a"))}}
	if rapid.IntRange(0, 7).Draw(t, "elsewhere") == 0 {
		devices.Requests[0].Exactly.DeviceClassName = rapid.SampledFrom([]string{"missing", "unreadable"}).Draw(t, "class")
		return
	}
	raw, err := json.Marshal(map[string]string{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": "a", "expression": text})
	if err != nil {
		panic(err)
	}
	devices.Config = []resourceapi.DeviceClaimConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{
		Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: "celset.dev", Parameters: runtime.RawExtension{Raw: raw}},
	}}}
}
