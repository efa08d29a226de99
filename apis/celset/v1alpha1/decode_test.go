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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

const ring4 = `{"apiVersion":"celset.dev/v1alpha1","kind":"CELDeviceConstraint","name":"ring4","expression":"true"}`

func TestDecodeErrors(t *testing.T) {
	const typed = `"apiVersion":"celset.dev/v1alpha1","kind":"CELDeviceConstraint"`
	const unknown = "unknown field: correct its name (names are case-sensitive), or update celset if a newer version has the field (--version prints the version of a program)"
	const duplicate = "duplicate field: set it once"
	const noVersion = "parameters.apiVersion: Required value: must be celset.dev/v1alpha1"
	const noKind = "parameters.kind: Required value: must be CELDeviceConstraint or CELDevicePreference or CELNodeSetConstraint"
	for name, tc := range map[string]struct{ raw, want string }{
		"unknown version": {
			raw:  `{"apiVersion":"celset.dev/v2","kind":"CELDeviceConstraint","expressions":["a"]}`,
			want: `parameters.apiVersion: Unsupported value: "celset.dev/v2": supported values: "celset.dev/v1alpha1"`,
		},
		"unknown kind": {
			raw:  `{"apiVersion":"celset.dev/v1alpha1","kind":"Ring","size":4}`,
			want: `parameters.kind: Unsupported value: "Ring": supported values: "CELDeviceConstraint", "CELDevicePreference", "CELNodeSetConstraint"`,
		},
		"unknown version of known field with other type": {
			raw:  `{"apiVersion":"celset.dev/v2","kind":"CELDeviceConstraint","expression":{"cel":"true"}}`,
			want: `parameters.apiVersion: Unsupported value: "celset.dev/v2": supported values: "celset.dev/v1alpha1"`,
		},
		"no type":             {raw: `{"name":"ring4","expression":"true"}`, want: noVersion + "; " + noKind},
		"null":                {raw: `null`, want: noVersion + "; " + noKind},
		"misspelt kind field": {raw: `{"apiVersion":"celset.dev/v1alpha1","Kind":"CELDeviceConstraint"}`, want: noKind + "; parameters.Kind: Invalid value: " + unknown},
		"unknown field":       {raw: `{` + typed + `,"name":"a","expresion":"true"}`, want: "parameters.expresion: Invalid value: " + unknown},
		"case of field":       {raw: `{` + typed + `,"Name":"a","expression":"true"}`, want: "parameters.Name: Invalid value: " + unknown},
		"duplicate field":     {raw: `{` + typed + `,"name":"a","name":"b"}`, want: "parameters.name: Invalid value: " + duplicate},
		"duplicate kind":      {raw: `{` + typed + `,"kind":"CELDeviceConstraint"}`, want: "parameters.kind: Invalid value: " + duplicate},
		"wrong type":          {raw: `{` + typed + `,"name":"a","expression":["true"]}`, want: "parameters.expression: Invalid value: must be a string, but is: array"},
		"wrong type of kind":  {raw: `{"kind":4}`, want: "parameters.kind: Invalid value: must be a string, but is: number"},
		"not an object":       {raw: `"true"`, want: "parameters: Invalid value: must be an object, but is: string"},
		"trailing data":       {raw: ring4 + `{}`, want: "parameters: Invalid value: must be valid JSON: invalid character '{' after top-level value (at byte 101)"},
		"empty":               {raw: ``, want: "parameters: Invalid value: must be valid JSON: unexpected end of JSON input (at byte 0)"},
	} {
		t.Run(name, func(t *testing.T) {
			def, err := Decode([]byte(tc.raw))
			require.EqualError(t, err, tc.want)
			require.Nil(t, def)
			var fieldErr *field.Error
			require.ErrorAs(t, err, &fieldErr)
		})
	}
}

// TestDecodeRoundTrip tests that Decode returns the constraint that was encoded.
func TestDecodeRoundTrip(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		want := CELDeviceConstraint{
			TypeMeta:   metav1.TypeMeta{APIVersion: SchemeGroupVersion.String(), Kind: Kind},
			Name:       rapid.String().Draw(t, "name"),
			Expression: rapid.String().Draw(t, "expression"),
		}
		raw, err := json.Marshal(want)
		require.NoError(t, err)
		got, err := Decode(raw)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(&want, got))
	})
}

// FuzzDecode checks that Decode never panics and returns either a value or an error. It encodes each decoded value and checks
// that Decode accepts it again.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		ring4, ring4 + ring4, `{}`, `[]`, `null`, ``, `"`, `{"kind":1}`, `{"a\nb":{"c":[1,2]}}`,
		`{"apiVersion":"celset.dev/v1alpha1","kind":"CELDeviceConstraint","name":"\ud800","expression":"\u0000"}`,
		`{"apiVersion":"celset.dev/v1alpha1","kind":"CELDeviceConstraint","name":"a","NAME":"b","name":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		def, err := Decode(raw)
		if err != nil {
			require.Nil(t, def)
			require.NotContains(t, err.Error(), "\n")
			return
		}
		encoded, err := json.Marshal(def)
		require.NoError(t, err)
		again, err := Decode(encoded)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(def, again))
	})
}

func TestValidateDefinition(t *testing.T) {
	const identifier = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' " +
		"(e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
	for name, tc := range map[string]struct {
		name, expression string
		want             []string
	}{
		"valid":                 {name: "ring4", expression: "true"},
		"shortest name":         {name: "_", expression: "true"},
		"longest name":          {name: strings.Repeat("a", 32), expression: "true"},
		"longest expression":    {name: "a", expression: strings.Repeat("x", 10240)},
		"no name":               {expression: "true", want: []string{"at.name: Required value: claims refer to the constraint with matchAttribute: celset.dev/<name>"}},
		"name too long":         {name: strings.Repeat("a", 33), expression: "true", want: []string{"at.name: Too long: may not be more than 32 bytes"}},
		"name with domain":      {name: "celset.dev/a", expression: "true", want: []string{`at.name: Invalid value: "celset.dev/a": ` + identifier}},
		"name with dash":        {name: "ring-4", expression: "true", want: []string{`at.name: Invalid value: "ring-4": ` + identifier}},
		"name with digit first": {name: "4ring", expression: "true", want: []string{`at.name: Invalid value: "4ring": ` + identifier}},
		"no expression":         {name: "a", want: []string{"at.expression: Required value: must be a CEL expression over `devices` that returns a bool"}},
		"blank expression":      {name: "a", expression: " \n\t", want: []string{"at.expression: Required value: must be a CEL expression over `devices` that returns a bool"}},
		"expression too long":   {name: "a", expression: strings.Repeat("x", 10241), want: []string{"at.expression: Too long: may not be more than 10240 bytes"}},
		"length is in bytes":    {name: "a", expression: strings.Repeat("ü", 5121), want: []string{"at.expression: Too long: may not be more than 10240 bytes"}},
		"nothing": {want: []string{
			"at.name: Required value: claims refer to the constraint with matchAttribute: celset.dev/<name>",
			"at.expression: Required value: must be a CEL expression over `devices` that returns a bool",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range ValidateDefinition(&CELDeviceConstraint{Name: tc.name, Expression: tc.expression}, field.NewPath("at")) {
				got = append(got, err.Error())
			}
			require.Empty(t, cmp.Diff(tc.want, got))
		})
	}
}

func TestValidateVariables(t *testing.T) {
	variable := func(name, expression string) Variable { return Variable{Name: name, Expression: expression} }
	for name, tc := range map[string]struct {
		variables []Variable
		want      []string
	}{
		"none":          {},
		"two":           {variables: []Variable{variable("a", "device.driver"), variable("b", "variables.a")}},
		"as many as":    {variables: make([]Variable, 33), want: []string{"at.variables: Too many: 33: must have at most 32 items"}},
		"no name":       {variables: []Variable{variable("", "1")}, want: []string{"at.variables[0].name: Required value: expressions read the variable as d.variables.<name>"}},
		"a long name":   {variables: []Variable{variable(strings.Repeat("a", 33), "1")}, want: []string{"at.variables[0].name: Too long: may not be more than 32 bytes"}},
		"twice":         {variables: []Variable{variable("a", "1"), variable("a", "2")}, want: []string{`at.variables[1].name: Duplicate value: "a"`}},
		"no expression": {variables: []Variable{variable("a", " ")}, want: []string{"at.variables[0].expression: Required value: must be a CEL expression over `device`"}},
		"a long one":    {variables: []Variable{variable("a", strings.Repeat("x", 10241))}, want: []string{"at.variables[0].expression: Too long: may not be more than 10240 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range ValidateDefinition(&CELDeviceConstraint{Name: "a", Expression: "true", Variables: tc.variables}, field.NewPath("at")) {
				got = append(got, err.Error())
			}
			require.Empty(t, cmp.Diff(tc.want, got))
		})
	}
}

// TestValidatePreference has the cases whose texts are too long for a transcript.
func TestValidatePreference(t *testing.T) {
	variables := make([]Variable, MaxVariables+1)
	for i := range variables {
		variables[i] = Variable{Name: fmt.Sprint("v", i), Expression: "1"}
	}
	errs := ValidatePreference(&CELDevicePreference{Name: "a", Type: PreferenceTypeExpression, Expression: "1" + strings.Repeat(" ", MaxExpressionLength), Variables: variables}, field.NewPath("at"))
	require.EqualError(t, errs.ToAggregate(), "[at.expression: Too long: may not be more than 10240 bytes, at.variables: Too many: 33: must have at most 32 items]")
}

func TestError(t *testing.T) {
	cause := errors.New("cause")
	required := field.Required(field.NewPath("spec", "a"), "")
	invalid := field.Invalid(field.NewPath("spec", "b"), 3, "must be even")
	err := &Error{
		Object: ObjectReference{Kind: "ResourceClaim", Namespace: "ns", Name: "c"},
		Errors: field.ErrorList{required, invalid},
		Causes: []error{cause},
	}
	require.EqualError(t, err, "ResourceClaim ns/c: spec.a: Required value; spec.b: Invalid value: 3: must be even")
	require.ErrorIs(t, err, required)
	require.ErrorIs(t, err, invalid)
	require.ErrorIs(t, err, cause)
	require.EqualError(t, &Error{Errors: field.ErrorList{required}}, "spec.a: Required value")
}
