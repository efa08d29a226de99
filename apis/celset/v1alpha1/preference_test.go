// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const typedPreference = `"apiVersion": "celset.dev/v1alpha1", "kind": "CELDevicePreference", `

// preference is a configuration entry with the fields, as JSON, of a preference.
func preference(fields string) resourceapi.DeviceConfiguration {
	return parameters(DriverName, `{`+typedPreference+fields+`}`)
}

// near is a preference with that name.
func near(name string) resourceapi.DeviceConfiguration {
	return preference(`"name": "` + name + `", "expression": "1"`)
}

// preferring makes a claim with the requests a of class x and b, which is one of class w or of z.
func preferring(t *testing.T, entries ...resourceapi.DeviceConfiguration) *resourceapi.ResourceClaim {
	claim := claimOf(t, `requests: [{name: a, exactly: {deviceClassName: x}}, {name: b, firstAvailable: [{name: l, deviceClassName: w}, {name: m, deviceClassName: z}]}]`)
	for _, entry := range entries {
		claim.Spec.Devices.Config = append(claim.Spec.Devices.Config, resourceapi.DeviceClaimConfiguration{DeviceConfiguration: entry})
	}
	return claim
}

func TestPreferences(t *testing.T) {
	variables := `"variables": [{"name": "v", "expression": "device.driver"}]`
	claim := preferring(t,
		preference(`"name": "near", "expression": "devices.size()", "requests": ["a", "b/m"], `+variables),
		definition(t, "near", "true"),
		parameters("driver.example.com", `{`+typedPreference+`}`),
		preference(`"name": "whole", "policy": "KeepWhole"`))
	object := ObjectReference{Kind: "ResourceClaim", Namespace: "default", Name: "four"}
	got, err := ClaimCarrier(claim).Preferences()
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]Preference{
		{
			Name: "near", Expression: "devices.size()", Variables: []Variable{{Name: "v", Expression: "device.driver"}}, Requests: []string{"a", "b/m"},
			Source: Source{Object: object, Field: "spec.devices.config[0]", Index: 0},
		},
		{Name: "whole", Policy: PolicyKeepWhole, Source: Source{Object: object, Field: "spec.devices.config[3]", Index: 3}},
	}, got))
	definitions, err := ClaimCarrier(claim).Definitions()
	require.NoError(t, err, "preferences are no definitions of constraints, and names are apart")
	require.Len(t, definitions, 1)
}

// TestPreferenceErrors provokes each error of one preference, in a claim and in a class.
func TestPreferenceErrors(t *testing.T) {
	const hint = " (field names are case-sensitive, each may be set once)"
	manyVariables := make([]string, MaxVariables+1)
	for i := range manyVariables {
		manyVariables[i] = fmt.Sprintf(`{"name": "v%d", "expression": "1"}`, i)
	}
	for name, test := range map[string]struct {
		raw  string
		want []string
	}{
		"unknown version": {`{"apiVersion": "celset.dev/v2", "kind": "CELDevicePreference", "size": 4}`,
			[]string{`.apiVersion: Unsupported value: "celset.dev/v2": supported values: "celset.dev/v1alpha1"`}},
		"no version": {`{"kind": "CELDevicePreference", "name": "a", "expression": "1"}`,
			[]string{".apiVersion: Required value: must be celset.dev/v1alpha1"}},
		"unknown field":          {`{` + typedPreference + `"name": "a", "expresion": "1"}`, []string{".expresion: Invalid value: unknown field" + hint}},
		"field of a constraint":  {`{` + typedPreference + `"name": "a", "expression": "1", "default": true}`, []string{".default: Invalid value: unknown field" + hint}},
		"failures can't be told": {`{` + typedPreference + `"name": "a", "expression": "1", "onError": "Abort"}`, []string{".onError: Invalid value: unknown field" + hint}},
		"case of field":          {`{` + typedPreference + `"name": "a", "Expression": "1"}`, []string{".Expression: Invalid value: unknown field" + hint}},
		"duplicate field":        {`{` + typedPreference + `"name": "a", "name": "b", "expression": "1"}`, []string{".name: Invalid value: duplicate field" + hint}},
		"wrong type":             {`{` + typedPreference + `"name": "a", "expression": 1}`, []string{".expression: Invalid value: must be a string, but is: number"}},
		"policies":               {`{` + typedPreference + `"name": "a", "policy": ["KeepWhole"]}`, []string{".policy: Invalid value: must be a string, but is: array"}},
		"requests as text":       {`{` + typedPreference + `"name": "a", "expression": "1", "requests": "a"}`, []string{".requests: Invalid value: must be of type []string, but is: string"}},
		"no name":                {`{` + typedPreference + `"expression": "1"}`, []string{".name: Required value: messages call it by that"}},
		"form of name":           {`{` + typedPreference + `"name": "a-b", "expression": "1"}`, []string{`.name: Invalid value: "a-b": a valid C identifier must start with`}},
		"long name": {`{` + typedPreference + `"name": "` + strings.Repeat("n", 33) + `", "expression": "1"}`,
			[]string{".name: Too long: may not be more than 32 bytes"}},
		"neither": {`{` + typedPreference + `"name": "a"}`,
			[]string{".expression: Required value: must be a CEL expression over `devices` that returns an int, unless there is a policy"}},
		"blank": {`{` + typedPreference + `"name": "a", "expression": " \n\t"}`,
			[]string{".expression: Required value: must be a CEL expression over `devices` that returns an int, unless there is a policy"}},
		"both": {`{` + typedPreference + `"name": "a", "policy": "KeepWhole", "expression": "1", "variables": [{"name": "v", "expression": "1"}]}`,
			[]string{".expression: Forbidden: a policy has none: remove one of them", ".variables: Forbidden: only an expression reads variables: remove them"}},
		"unknown policy": {`{` + typedPreference + `"name": "a", "policy": "keepWhole"}`,
			[]string{`.policy: Unsupported value: "keepWhole": supported values: "KeepWhole"`}},
		"too long": {`{` + typedPreference + `"name": "a", "expression": "1` + strings.Repeat(" ", MaxExpressionLength) + `"}`,
			[]string{fmt.Sprintf(".expression: Too long: may not be more than %d bytes", MaxExpressionLength)}},
		"too many variables": {`{` + typedPreference + `"name": "a", "expression": "1", "variables": [` + strings.Join(manyVariables, ", ") + `]}`,
			[]string{fmt.Sprintf(".variables: Too many: %d: must have at most %d items", MaxVariables+1, MaxVariables)}},
		"variable without expression": {`{` + typedPreference + `"name": "a", "expression": "1", "variables": [{"name": "v"}]}`,
			[]string{".variables[0].expression: Required value: must be a CEL expression over `device`"}},
	} {
		t.Run(name, func(t *testing.T) {
			for where, find := range map[string]func(resourceapi.DeviceConfiguration) ([]Preference, error){
				"ResourceClaim default/four: spec.devices.config[0].opaque.parameters": func(entry resourceapi.DeviceConfiguration) ([]Preference, error) {
					return ClaimCarrier(preferring(t, entry, near("other"))).Preferences()
				},
				"DeviceClass x: spec.config[0].opaque.parameters": func(entry resourceapi.DeviceConfiguration) ([]Preference, error) {
					return ClassPreferences(classOf("x", entry, near("other")))
				},
			} {
				got, err := find(parameters(DriverName, test.raw))
				failure, ok := errors.AsType[*Error](err)
				require.True(t, ok, "%v", err)
				require.Len(t, failure.Errors, len(test.want))
				for i, want := range test.want {
					require.Contains(t, failure.Object.String()+": "+failure.Errors[i].Error(), where+want)
				}
				require.Len(t, got, 1, "what is right is returned all the same")
				require.Equal(t, "other", got[0].Name)
			}
		})
	}
}

// TestErrorsOfSeveralPreferences are about preferences beside each other, and beside requests.
func TestErrorsOfSeveralPreferences(t *testing.T) {
	many := make([]resourceapi.DeviceConfiguration, MaxPreferences+2)
	for i := range many {
		many[i] = near(fmt.Sprintf("n%d", i))
	}
	for name, test := range map[string]struct {
		entries []resourceapi.DeviceConfiguration
		claim   []string
		class   []string
		valid   int
	}{
		"same name": {
			entries: []resourceapi.DeviceConfiguration{near("a"), definition(t, "a", "true"), near("a")}, valid: 1,
			claim: []string{`spec.devices.config[2].opaque.parameters.name: Duplicate value: "a": already defined at spec.devices.config[0]: rename or remove one of them`},
			class: []string{`spec.config[2].opaque.parameters.name: Duplicate value: "a": already defined at spec.config[0]: rename or remove one of them`},
		},
		"too many": {
			entries: many, valid: MaxPreferences,
			claim: []string{"spec.devices.config: Too many: 5: must have at most 4 items", "spec.devices.config: Too many: 5: must have at most 4 items"},
			class: []string{"spec.config: Too many: 5: must have at most 4 items", "spec.config: Too many: 5: must have at most 4 items"},
		},
		"requests": {
			entries: []resourceapi.DeviceConfiguration{preference(`"name": "a", "expression": "1", "requests": ["a", "c", "a/l", "b/l", "b"]`)}, valid: 1,
			claim: []string{
				`spec.devices.config[0].opaque.parameters.requests[1]: Not found: "c": must be the name of a request in the claim, or of a request and one of its alternatives separated by '/'`,
				`spec.devices.config[0].opaque.parameters.requests[2]: Not found: "a/l": must be the name of a request in the claim, or of a request and one of its alternatives separated by '/'`,
			},
			class: []string{"spec.config[0].opaque.parameters.requests: Forbidden: a class does not know the requests of claims: leave this out, it is about each request of the class"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ClaimCarrier(preferring(t, test.entries...)).Preferences()
			require.EqualError(t, err, "ResourceClaim default/four: "+strings.Join(test.claim, "; "))
			require.Len(t, got, test.valid)
			_, err = ClassPreferences(classOf("x", test.entries...))
			require.EqualError(t, err, "DeviceClass x: "+strings.Join(test.class, "; "))
			_, err = ResolvePreferences(preferring(t, test.entries...), classes())
			require.EqualError(t, err, "ResourceClaim default/four: "+strings.Join(test.claim, "; "))
		})
	}
}

// TestPreferencesWhereverTheyStand: in a template, and made in Go.
func TestPreferencesWhereverTheyStand(t *testing.T) {
	entry := parameters(DriverName, "")
	entry.Opaque.Parameters = runtime.RawExtension{Object: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "celset.dev/v1alpha1", "kind": PreferenceKind, "name": "near", "expression": "1",
	}}}
	template := &resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "pair-"},
		Spec:       resourceapi.ResourceClaimTemplateSpec{Spec: preferring(t, entry).Spec},
	}
	got, err := TemplateCarrier(template).Preferences()
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, "ResourceClaimTemplate default/pair-* spec.spec.devices.config[0]", got[0].Source.String())
	require.Equal(t, "near", got[0].Label())
}

func TestResolvePreferences(t *testing.T) {
	x, w := classOf("x", near("one"), definition(t, "c", "true"), near("two")), classOf("w", near("three"))
	const one, two, three = "[a] one of DeviceClass x spec.config[0]", "[a] two of DeviceClass x spec.config[2]", "[b/l] three of DeviceClass w spec.config[0]"
	for name, test := range map[string]struct {
		own  []resourceapi.DeviceConfiguration
		want []string
	}{
		"of the classes":           {nil, []string{one, two, three}},
		"the claim's, about all":   {[]resourceapi.DeviceConfiguration{near("mine")}, []string{"[] mine"}},
		"about a request":          {[]resourceapi.DeviceConfiguration{preference(`"name": "mine", "expression": "1", "requests": ["a"]`)}, []string{"[a] mine", three}},
		"about an alternative":     {[]resourceapi.DeviceConfiguration{preference(`"name": "mine", "expression": "1", "requests": ["b/l"]`)}, []string{"[b/l] mine", one, two}},
		"about all alternatives":   {[]resourceapi.DeviceConfiguration{preference(`"name": "mine", "expression": "1", "requests": ["b"]`)}, []string{"[b] mine", one, two}},
		"about another one":        {[]resourceapi.DeviceConfiguration{preference(`"name": "mine", "expression": "1", "requests": ["b/m"]`)}, []string{"[b/m] mine", one, two, three}},
		"by name does not matter":  {[]resourceapi.DeviceConfiguration{preference(`"name": "one", "policy": "KeepWhole", "requests": ["b"]`)}, []string{"[b] one", one, two}},
		"several, in their order":  {[]resourceapi.DeviceConfiguration{near("second"), near("first")}, []string{"[] second", "[] first"}},
		"a constraint is not one":  {[]resourceapi.DeviceConfiguration{definition(t, "mine", "true")}, []string{one, two, three}},
		"of another driver, alike": {[]resourceapi.DeviceConfiguration{parameters("x.example.com", `{`+typedPreference+`"name": "mine"}`)}, []string{one, two, three}},
	} {
		t.Run(name, func(t *testing.T) {
			resolved, err := ResolvePreferences(preferring(t, test.own...), classes(x, w, classOf("z")))
			require.NoError(t, err)
			var got []string
			for i := range resolved {
				got = append(got, "["+strings.Join(resolved[i].Requests, " ")+"] "+resolved[i].Label())
			}
			require.Equal(t, test.want, got)
		})
	}
}

func TestResolvePreferencesOfClasses(t *testing.T) {
	malformed := classOf("x", near("good"), preference(`"name": "bad"`))
	_, err := ResolvePreferences(preferring(t), classes(malformed, classOf("w"), classOf("z")))
	require.EqualError(t, err, "ResourceClaim default/four: spec.devices.requests[0].exactly.deviceClassName: Invalid value: \"x\": DeviceClass x: "+
		"spec.config[1].opaque.parameters.expression: Required value: must be a CEL expression over `devices` that returns an int, unless there is a policy")
	var failure *Error
	require.ErrorAs(t, errors.Unwrap(fmt.Errorf("%w", err)), &failure)
	require.Len(t, failure.Causes, 1)

	_, err = ResolvePreferences(preferring(t, near("mine")), classes(malformed))
	require.NoError(t, err, "nobody needs what the class says")
	resolved, err := ResolvePreferences(preferring(t), classes(classOf("z", near("far"))))
	require.NoError(t, err, "who looks for devices says that there is no class x")
	require.Len(t, resolved, 1)
	require.Equal(t, []string{"b/m"}, resolved[0].Requests)
}

// TestEachClassIsReadOnce, in however many requests it is used.
func TestEachClassIsReadOnce(t *testing.T) {
	claim := preferring(t)
	for i := range 30 {
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourceapi.DeviceRequest{
			Name: fmt.Sprint("r", i), Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "x"},
		})
	}
	for _, class := range []*resourceapi.DeviceClass{classOf("x", near("a")), classOf("x", preference(`"name": "bad"`))} {
		list := classes(class, classOf("w"), classOf("z"))
		_, err := ResolvePreferences(claim, list)
		require.Equal(t, []string{"x", "w", "z"}, list.asked)
		if failure, is := errors.AsType[*Error](err); is {
			require.Len(t, failure.Errors, 1)
		}
	}
}

func TestHasPreference(t *testing.T) {
	for raw, want := range map[string]bool{
		`{` + typedPreference + `"name": "a"}`:                           true,
		`{"kind": "CELDevicePreference"}`:                                true,
		`{"kind": "CELDevice\u0050reference"}`:                           true,
		`{"k\u0069nd": "CELDevicePreference"}`:                           true,
		`{"Kind": "CELDevicePreference"}`:                                false,
		`{"kind": ["CELDevicePreference"]}`:                              false,
		`{"kind": "CELDeviceConstraint", "name": "CELDevicePreference"}`: false,
		`{"metadata": {"kind": "CELDevicePreference"}}`:                  false,
		`["CELDevicePreference"]`:                                        false,
		`"CELDevicePreference"`:                                          false,
		`{"kind": "CELDevicePreference"`:                                 false,
		`{"kind": "CELDevicePreference", "kind": "CELDeviceConstraint"}`: false,
		`null`: false, ``: false,
	} {
		entry := parameters(DriverName, raw)
		none := func(string) bool { return false }
		require.Equal(t, want, HasPreference(preferring(t, entry), none), raw)
		require.Equal(t, want, HasPreferences(classOf("x", entry)), raw)
		if raw != "" {
			require.Equal(t, !want, HasDefinition(preferring(t, entry)), "each entry of our driver is one or the other: %s", raw)
		}
		require.True(t, HasPreference(preferring(t), func(name string) bool { return name == "z" }))
	}
	require.False(t, HasPreferences(classOf("x", parameters("x.example.com", `{`+typedPreference+`}`))))
}

// TestTwoKindsAreNone: which of the two it is decides who refuses it.
func TestTwoKindsAreNone(t *testing.T) {
	for _, kinds := range []string{`"kind": "CELDevicePreference", "kind": "CELDeviceConstraint"`, `"kind": "CELDeviceConstraint", "kind": "CELDevicePreference"`} {
		claim := preferring(t, parameters(DriverName, `{"apiVersion": "celset.dev/v1alpha1", "name": "a", "expression": "1", `+kinds+`}`))
		_, err := ClaimCarrier(claim).Definitions()
		_, preferenceErr := ClaimCarrier(claim).Preferences()
		require.ErrorContains(t, errors.Join(err, preferenceErr), "parameters.kind: Invalid value: duplicate field")
	}
}

// FuzzPreferences: whatever parameters are, each entry is a constraint or a preference, nothing
// panics, and a preference that is valid has a name and one of expression and policy.
func FuzzPreferences(f *testing.F) {
	for _, seed := range []string{
		`{` + typedPreference + `"name": "a", "expression": "1"}`, `{` + typedPreference + `"name": "a", "policy": "KeepWhole"}`,
		`{` + typedPreference + `"name": "a", "expression": "1", "requests": ["a", null, "b/m"], "variables": [null, {}]}`,
		`{"kind": "CELDevice\u0050reference", "name": "\ud800"}`, `{}`, `[]`, `null`, ``, `"CELDevicePreference"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		class := classOf("x", parameters(DriverName, string(raw)))
		definitions, definitionErr := ClassDefinitions(class)
		preferences, err := ClassPreferences(class)
		require.LessOrEqual(t, len(definitions)+len(preferences), 1)
		require.False(t, definitionErr != nil && err != nil)
		for _, p := range preferences {
			require.NotEmpty(t, p.Name)
			require.NotEqual(t, p.Policy == "", strings.TrimSpace(p.Expression) == "")
			written, marshalErr := json.Marshal(CELDevicePreference{Name: p.Name, Expression: p.Expression, Policy: p.Policy, Variables: p.Variables})
			require.NoError(t, marshalErr)
			require.NotEmpty(t, written)
			require.Empty(t, ValidatePreference(&CELDevicePreference{Name: p.Name, Expression: p.Expression, Policy: p.Policy, Variables: p.Variables}, field.NewPath("p")))
		}
	})
}

// BenchmarkHasPreference is what each node asks, of a claim as large as the API allows.
func BenchmarkHasPreference(b *testing.B) {
	for name, text := range map[string]string{"no kind": "a", "kind as text": PreferenceKind + " "} {
		b.Run(name, func(b *testing.B) {
			claim := &resourceapi.ResourceClaim{}
			entry := parameters(DriverName, `{"kind": "Other", "name": "`+strings.Repeat(text, 10_000/len(text))+`"}`)
			for range resourceapi.DeviceConfigMaxSize {
				claim.Spec.Devices.Config = append(claim.Spec.Devices.Config, resourceapi.DeviceClaimConfiguration{DeviceConfiguration: entry})
			}
			for b.Loop() {
				if HasPreference(claim, nil) {
					b.Fatal("it is another kind")
				}
			}
		})
	}
}

func TestRequestsWithout(t *testing.T) {
	claim := preferring(t)
	all := RequestsWithout(claim, nil)
	require.NotEmpty(t, all)
	require.Empty(t, RequestsWithout(claim, []Preference{{Name: "a"}}), "about all requests")
	require.Equal(t, all[1:], RequestsWithout(claim, []Preference{{Name: "a", Requests: all[:1]}}))
	require.Equal(t, all, RequestsWithout(claim, []Preference{{Name: "a", Requests: []string{"none"}}}))
}
