// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
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
	const hint = " (field names are case-sensitive, each may be set once)"
	const noVersion = "parameters.apiVersion: Required value: must be celset.dev/v1alpha1"
	const noKind = "parameters.kind: Required value: must be CELDeviceConstraint or CELDevicePreference"
	for name, tc := range map[string]struct{ raw, want string }{
		"unknown version": {
			raw:  `{"apiVersion":"celset.dev/v2","kind":"CELDeviceConstraint","expressions":["a"]}`,
			want: `parameters.apiVersion: Unsupported value: "celset.dev/v2": supported values: "celset.dev/v1alpha1"`,
		},
		"unknown kind": {
			raw:  `{"apiVersion":"celset.dev/v1alpha1","kind":"Ring","size":4}`,
			want: `parameters.kind: Unsupported value: "Ring": supported values: "CELDeviceConstraint", "CELDevicePreference"`,
		},
		"unknown version of known field with other type": {
			raw:  `{"apiVersion":"celset.dev/v2","kind":"CELDeviceConstraint","expression":{"cel":"true"}}`,
			want: `parameters.apiVersion: Unsupported value: "celset.dev/v2": supported values: "celset.dev/v1alpha1"`,
		},
		"no type":             {raw: `{"name":"ring4","expression":"true"}`, want: noVersion + "; " + noKind},
		"null":                {raw: `null`, want: noVersion + "; " + noKind},
		"misspelt kind field": {raw: `{"apiVersion":"celset.dev/v1alpha1","Kind":"CELDeviceConstraint"}`, want: noKind + "; parameters.Kind: Invalid value: unknown field" + hint},
		"unknown field":       {raw: `{` + typed + `,"name":"a","expresion":"true"}`, want: "parameters.expresion: Invalid value: unknown field" + hint},
		"case of field":       {raw: `{` + typed + `,"Name":"a","expression":"true"}`, want: "parameters.Name: Invalid value: unknown field" + hint},
		"duplicate field":     {raw: `{` + typed + `,"name":"a","name":"b"}`, want: "parameters.name: Invalid value: duplicate field" + hint},
		"duplicate kind":      {raw: `{` + typed + `,"kind":"CELDeviceConstraint"}`, want: "parameters.kind: Invalid value: duplicate field" + hint},
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

// TestDecodeRoundTrip states that whatever can be written is read back.
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

// FuzzDecode checks that Decode returns either a value or an error, never
// panics, and that what it accepts it accepts again after encoding.
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
