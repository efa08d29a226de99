// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

const (
	entry      = "spec.devices.config[0].opaque.parameters"
	reference  = "spec.devices.constraints[0].matchAttribute: "
	identities = "devices.all(d, devices.exists(o, d == o))"
)

// oneClass has an expression of its own, and one that does not compile.
func oneClass(t testing.TB) fakeClasses {
	return fakeClasses{"mla": classOf(t, "mla", "config: ["+defined("shipped", identities)+"]")}
}

func TestErrorsOfClaims(t *testing.T) {
	typed := "apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, "
	tests := map[string]struct {
		devices string
		classes fakeClasses
		errors  []string
	}{
		"nothing":            {devices: "{}"},
		"no business of us":  {devices: "requests: [{name: r, exactly: {deviceClassName: none}}]\nconstraints: [{matchAttribute: a.example.com/b}]\nconfig: [{opaque: {driver: a.example.com, parameters: 3}}]"},
		"defined by a claim": {devices: asking(4, defined("a", identities))},
		"defined by a class": {devices: strings.Replace(asking(4), "dev/a", "dev/shipped", 1)},
		"unknown name": {devices: asking(4, defined("b", "true")), errors: []string{
			reference + `Not found: "celset.dev/a": no CELDeviceConstraint of that name in spec.devices.config of the ResourceClaim, spec.config of DeviceClass mla: define it in one of them`}},
		"twice in the claim": {devices: asking(4, defined("a", "true"), defined("a", "true")), errors: []string{
			`spec.devices.config[1].opaque.parameters.name: Duplicate value: "a": already defined at spec.devices.config[0]: rename or remove one of them`}},
		"two classes differ": {
			devices: `
requests: [{name: r, exactly: {deviceClassName: mla}}, {name: s, exactly: {deviceClassName: gpu}}]
constraints: [{matchAttribute: celset.dev/shipped}]`,
			classes: fakeClasses{
				"mla": classOf(t, "mla", "config: ["+defined("shipped", "true")+"]"),
				"gpu": classOf(t, "gpu", "config: ["+defined("shipped", "false")+"]"),
			},
			errors: []string{reference + `Invalid value: "celset.dev/shipped": DeviceClass mla spec.config[0] and DeviceClass gpu spec.config[0] define it differently: make them equal, or define it in the claim`},
		},
		"distinctAttribute": {devices: strings.Replace(asking(4, defined("a", "true")), "matchA", "distinctA", 1), errors: []string{
			"spec.devices.constraints[0].distinctAttribute: Forbidden: the domain celset.dev is for CEL device constraints: use matchAttribute: celset.dev/a"}},
		"a variable": {devices: asking(4, "{opaque: {driver: celset.dev, parameters: {"+typed+`name: a, expression: "devices.all(d, d.variables.b == 1)", variables: [{name: a, expression: "1"}, {name: b, expression: "variables.a + ''"}]}}}`), errors: []string{
			entry + ".variables[1].expression: Invalid value: variable b: ERROR: <input>:1:13: found no matching overload for '_+_' applied to '(int, string)'\n | variables.a + ''\n | ............^"}},
		"with variables": {devices: asking(4, "{opaque: {driver: celset.dev, parameters: {"+typed+`name: a, expression: "devices.all(d, d.variables.a == 1)", variables: [{name: a, expression: "1"}]}}}`)},
		"unknown kind": {devices: asking(4, "{opaque: {driver: celset.dev, parameters: {apiVersion: celset.dev/v1alpha1, kind: Ring}}}"), errors: []string{
			entry + `.kind: Unsupported value: "Ring": supported values: "CELDeviceConstraint", "CELDevicePreference"`}},
		"unknown version": {devices: asking(4, "{opaque: {driver: celset.dev, parameters: {apiVersion: celset.dev/v9, kind: CELDeviceConstraint}}}"), errors: []string{
			entry + `.apiVersion: Unsupported value: "celset.dev/v9": supported values: "celset.dev/v1alpha1"`}},
		"unknown field": {devices: asking(4, "{opaque: {driver: celset.dev, parameters: {"+typed+`name: a, expression: "true", Expression: "true"}}}`), errors: []string{
			entry + ".Expression: Invalid value: unknown field (field names are case-sensitive, each may be set once)"}},
		"no parameters": {devices: asking(4, "{opaque: {driver: celset.dev}}"), errors: []string{
			entry + ": Required value: must be a CELDeviceConstraint or CELDevicePreference"}},
		"malformed and never referenced": {devices: "config: [" + defined("a", " ") + "]", errors: []string{
			entry + ".expression: Required value: must be a CEL expression over `devices` that returns a bool"}},
		"too long": {devices: asking(4, defined("a", strings.Repeat(" ", 10*1024)+"true")), errors: []string{
			entry + ".expression: Too long: may not be more than 10240 bytes"}},
		"syntax": {devices: asking(4, defined("a", "true &&\n devices.all(d, d.driver = 'a')")), errors: []string{
			entry + ".expression: Invalid value: ERROR: <input>:2:26: Syntax error: token recognition error at: '= '\n |  devices.all(d, d.driver = 'a')\n | .........................^\n" +
				"ERROR: <input>:2:28: Syntax error: extraneous input ''a'' expecting ')'\n |  devices.all(d, d.driver = 'a')\n | ...........................^"}},
		"unknown variable": {devices: asking(4, defined("a", "device.driver == 'a'")), errors: []string{
			entry + ".expression: Invalid value: ERROR: <input>:1:1: undeclared reference to 'device' (in container '')\n | device.driver == 'a'\n | ^"}},
		"no bool": {devices: asking(4, defined("a", "devices.size()")), errors: []string{
			entry + ".expression: Invalid value: ERROR: <input>:1:1: the expression must return bool, it returns int\n | devices.size()\n | ^"}},
		"malformed class": {devices: asking(4), classes: fakeClasses{"mla": classOf(t, "mla", "config: ["+defined("", "true")+"]")}, errors: []string{
			reference + `Invalid value: "celset.dev/a": DeviceClass mla: spec.config[0].opaque.parameters.name: Required value: claims refer to it as matchAttribute celset.dev/<name>`}},
		"class does not compile": {devices: asking(4), classes: fakeClasses{"mla": classOf(t, "mla", "config: ["+defined("a", "1")+"]")}, errors: []string{
			reference + "Invalid value: DeviceClass mla spec.config[0]: ERROR: <input>:1:1: the expression must return bool, it returns int\n | 1\n | ^"}},
		"default in a claim": {devices: asking(4, "{opaque: {driver: celset.dev, parameters: {"+typed+`name: a, expression: "true", default: true}}}`), errors: []string{
			entry + ".default: Forbidden: only the definition of a DeviceClass can be a default: refer to it, or leave this out"}},
		"default of a class does not compile": {devices: asking(4, defined("a", "true")),
			classes: fakeClasses{"mla": classOf(t, "mla", "config: [{opaque: {driver: celset.dev, parameters: {"+typed+"name: b, expression: '1', default: true}}}]")}, errors: []string{
				"spec.devices.requests[r].deviceClassName: Invalid value: DeviceClass mla spec.config[0]: ERROR: <input>:1:1: the expression must return bool, it returns int\n | 1\n | ^"}},
		"unknown request": {devices: strings.Replace(asking(4, defined("a", "true")), "requests: [r]", "requests: [s]", 1), errors: []string{
			`spec.devices.constraints[0].requests[0]: Not found: "s": must be the name of a request in the claim, or of a request and one of its alternatives separated by '/'`}},
		"derived attribute": {devices: "requests: [{name: r, exactly: {deviceClassName: mla, derivedAttributes: [{name: celset.dev/a}]}}]", errors: []string{
			"spec.devices.requests[0].exactly.derivedAttributes[0].name: Forbidden: the domain celset.dev is for CEL device constraints: choose another domain"}},
		"several": {devices: asking(4, defined("a", "1"), defined("4", "true")), errors: []string{
			`spec.devices.config[1].opaque.parameters.name: Invalid value: "4": a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')`,
			entry + ".expression: Invalid value: ERROR: <input>:1:1: the expression must return bool, it returns int\n | 1\n | ^"}},
	}
	checker := newChecker(t, Options{})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.classes == nil {
				test.classes = oneClass(t)
			}
			claim := claimOf(t, test.devices)
			got := judged(checker.Claim(t.Context(), claim, test.classes))
			require.ElementsMatch(t, test.errors, texts(got.Errors))
			require.False(t, got.Undecided)

			inTemplate := func(text string) string {
				return strings.ReplaceAll(strings.ReplaceAll(text, "spec.devices", "spec.spec.devices"), "the ResourceClaim", "the ResourceClaimTemplate")
			}
			var want []string
			for _, text := range test.errors {
				want = append(want, inTemplate(text))
			}
			require.ElementsMatch(t, want, texts(judged(checker.Template(t.Context(), templateOf(claim), test.classes)).Errors))
		})
	}
}

func TestWarningsOfClaims(t *testing.T) {
	const where = "spec.devices.constraints[0]: a"
	tests := map[string]struct {
		devices  string
		classes  fakeClasses
		warnings []string
	}{
		"none": {devices: asking(4, defined("a", identities))},
		"never referenced": {devices: asking(4, defined("a", "true"), defined("b", "true")), warnings: []string{
			`spec.devices.config[1]: no constraint refers to "b", so it does nothing; add matchAttribute: celset.dev/b to spec.devices.constraints`}},
		"never referenced, does not compile": {devices: asking(4, defined("a", "true"), defined("b", "devices.foo()")), warnings: []string{
			`spec.devices.config[1]: no constraint refers to "b", and its expression does not compile: line 1, column 12: undeclared reference to 'foo' (in container '')`}},
		"by index": {devices: asking(2, defined("a", "true &&\n\tdevices[0].driver == 'a'")), warnings: []string{
			where + ", line 2, column 9: the verdict may depend on the order of the devices; a set is evaluated in one order only, that of the requests and the pools"}},
		"expensive": {devices: asking(32, defined("a", "devices.all(a, devices.all(b, devices.all(c, devices.all(d, devices.all(e, a == b || c == d || e == a)))))")), warnings: []string{
			where + ": one evaluation on 32 devices may cost up to 307401890 CEL cost units, the limit is 1000000; ask for fewer devices or write a cheaper expression"}},
		"not so expensive for two": {devices: asking(2, defined("a", "devices.all(a, devices.all(b, devices.all(c, devices.all(d, devices.all(e, a == b || c == d || e == a)))))"))},
		"unreadable": {devices: asking(4, defined("a", "devices.map(d, string(d.attributes['a'].x)).sort().join() == '1234'")), warnings: []string{
			where + ": the search can't read the expression, and may have 635376 sets of 4 devices to try on a node; " +
				"narrow the candidates with selectors, or write it as docs/constraints.md says"}},
		"missing class": {devices: asking(4), classes: fakeClasses{}, warnings: []string{
			reference + `Not found: "celset.dev/a": can't look it up in DeviceClass mla: deviceclasses.resource.k8s.io "mla" not found: pods that use the claim will wait until it is there`}},
		"unavailable class": {devices: asking(4), classes: fakeClasses{"mla": nil}, warnings: []string{
			reference + `Internal error: celset.dev/a: can't look it up in DeviceClass mla: no answer: pods that use the claim will wait until it is there`}},
	}
	checker := newChecker(t, Options{})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			missing := test.classes != nil
			if !missing {
				test.classes = oneClass(t)
			}
			got := judged(checker.Claim(t.Context(), claimOf(t, test.devices), test.classes))
			require.Empty(t, got.Errors)
			require.Equal(t, test.warnings, got.Warnings)
			require.Equal(t, missing, got.Undecided)
		})
	}
}

// TestOwnMistakesAreFoundWithoutClasses: they stay, whatever becomes of the class.
func TestOwnMistakesAreFoundWithoutClasses(t *testing.T) {
	claim := claimOf(t, `
requests: [{name: r, exactly: {deviceClassName: mla}}]
constraints: [{matchAttribute: celset.dev/a}, {matchAttribute: celset.dev/shipped}]
config: [`+defined("a", "1")+`]`)
	got := judged(newChecker(t, Options{}).Claim(t.Context(), claim, fakeClasses{}))
	require.Len(t, got.Errors, 1)
	require.Equal(t, entry+".expression", got.Errors[0].Field)
	require.True(t, got.Undecided)
}

func TestClasses(t *testing.T) {
	const where = "spec.config[0].opaque.parameters"
	tests := map[string]struct {
		spec     string
		errors   []string
		warnings []string
	}{
		"nothing":         {spec: "{}"},
		"another driver":  {spec: "config: [{opaque: {driver: a.example.com, parameters: {}}}]"},
		"two definitions": {spec: "config: [" + defined("a", "true") + "," + defined("b", identities) + "]"},
		"twice": {spec: "config: [" + defined("a", "true") + "," + defined("a", "false") + "]", errors: []string{
			`spec.config[1].opaque.parameters.name: Duplicate value: "a": already defined at spec.config[0]: rename or remove one of them`}},
		"does not compile": {spec: "config: [" + defined("a", "devices.all(d)") + "," + defined("b", "") + "]", errors: []string{
			where + ".expression: Invalid value: ERROR: <input>:1:12: undeclared reference to 'all' (in container '')\n | devices.all(d)\n | ...........^\n" +
				"ERROR: <input>:1:13: undeclared reference to 'd' (in container '')\n | devices.all(d)\n | ............^",
			"spec.config[1].opaque.parameters.expression: Required value: must be a CEL expression over `devices` that returns a bool"}},
		"default": {spec: "config: [{opaque: {driver: celset.dev, parameters: {apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, name: a, expression: 'true', default: true}}}]", warnings: []string{
			"spec.config[0]: a is a default: schedulers without celset ignore it and allocate any devices; " +
				"safe only where celset-scheduler schedules all pods that use the class (docs/constraints.md#defaults-of-a-class)"}},
		"by index": {spec: "config: [" + defined("a", "devices[1].driver == 'a'") + "]", warnings: []string{
			"spec.config[0]: a, line 1, column 8: the verdict may depend on the order of the devices; a set is evaluated in one order only, that of the requests and the pools"}},
	}
	checker := newChecker(t, Options{})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := judged(checker.Class(t.Context(), classOf(t, "mla", test.spec)))
			require.ElementsMatch(t, test.errors, texts(got.Errors))
			require.Equal(t, test.warnings, got.Warnings)
		})
	}
}

// TestManySets pins where the warning begins, and that it takes both.
func TestManySets(t *testing.T) {
	// Nothing is known of a list that is sorted and compared as a whole.
	const unreadable = "devices.map(d, d.attributes['a'].x).sort().join(',') == '1,2'"
	sets := func(options Options, devices string) string {
		got := judged(newChecker(t, options).Claim(t.Context(), claimOf(t, devices), fakeClasses{}))
		require.Empty(t, got.Errors)
		for _, text := range got.Warnings {
			if strings.Contains(text, "the search can't read") {
				return text
			}
		}
		return ""
	}
	require.Equal(t, "spec.devices.constraints[0]: a: the search can't read the expression, and may have 635376 sets of 4 devices to try on a node; "+
		"narrow the candidates with selectors, or write it as docs/constraints.md says", sets(Options{}, asking(4, defined("a", unreadable))))
	require.Empty(t, sets(Options{}, asking(3, defined("a", unreadable))), "64 over 3 is 41664")
	require.Empty(t, sets(Options{Devices: 16}, asking(4, defined("a", unreadable))))
	require.Empty(t, sets(Options{}, asking(4, defined("a", identities))), "it can be read")
	require.Empty(t, sets(Options{}, asking(33, defined("a", unreadable))), "nobody can have them")
	require.Contains(t, sets(Options{Devices: 1 << 20}, asking(32, defined("a", unreadable))), "1.73e+157 sets of 32 devices")
}

func TestTextsAreBounded(t *testing.T) {
	checker := newChecker(t, Options{})
	long := strings.Repeat("é + ", 2000) + "true"
	got := judged(checker.Claim(t.Context(), claimOf(t, asking(4, defined("a", long))), fakeClasses{}))
	require.Len(t, got.Errors, 1)
	require.Less(t, len(got.Errors[0].Error()), maxText+200)
	require.Contains(t, got.Errors[0].Error(), "<input>:1:1: ")
	require.Equal(t, strings.ToValidUTF8(got.Errors[0].Detail, "?"), got.Errors[0].Detail)
	require.LessOrEqual(t, len(v1alpha1.DriverName), resourceapi.DriverNameMaxLength)
}
