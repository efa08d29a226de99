// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type sample struct {
	metav1.TypeMeta `json:",inline"`
	Name            string  `json:"name"`
	Inner           *sample `json:"inner"`
	Number          int     `json:"number"`
}

func messages(errs field.ErrorList) []string {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return texts
}

func TestUnmarshal(t *testing.T) {
	const unknown = "unknown field: correct its name (names are case-sensitive), or update celset if a newer version has the field (--version prints the version of a program)"
	const duplicate = "duplicate field: set it once"
	for name, tc := range map[string]struct {
		raw  string
		want []string
	}{
		"all fields":        {raw: `{"apiVersion":"v1","kind":"Sample","name":"n","number":3,"inner":{"name":"i"}}`},
		"no fields":         {raw: `{}`},
		"null":              {raw: `null`},
		"white space":       {raw: " {\n\"name\":\t\"n\"} \n"},
		"unknown":           {raw: `{"nme":"n"}`, want: []string{"at.nme: Invalid value: " + unknown}},
		"unknown, nested":   {raw: `{"inner":{"nme":"n"}}`, want: []string{"at.inner.nme: Invalid value: " + unknown}},
		"duplicate, nested": {raw: `{"inner":{"name":"n","name":"n"}}`, want: []string{"at.inner.name: Invalid value: " + duplicate}},
		"odd name, nested":  {raw: `{"inner":{"a b":1}}`, want: []string{`at["inner.a b"]: Invalid value: ` + unknown}},
		"other case":        {raw: `{"Name":"n"}`, want: []string{"at.Name: Invalid value: " + unknown}},
		"duplicate":         {raw: `{"name":"n","name":"n"}`, want: []string{"at.name: Invalid value: " + duplicate}},
		"odd name":          {raw: `{"a\nb":1}`, want: []string{`at["a\nb"]: Invalid value: ` + unknown}},
		"two mistakes": {raw: `{"a":1,"b":2}`, want: []string{
			"at.a: Invalid value: " + unknown,
			"at.b: Invalid value: " + unknown,
		}},
		"number for string": {raw: `{"name":5}`, want: []string{"at.name: Invalid value: must be a string, but is: number"}},
		"string for number": {raw: `{"number":"5"}`, want: []string{"at.number: Invalid value: must be an integer, but is: string"}},
		"fraction":          {raw: `{"inner":{"number":1.5}}`, want: []string{"at.inner.number: Invalid value: must be an integer, but is: number 1.5"}},
		"string for object": {raw: `{"inner":"x"}`, want: []string{"at.inner: Invalid value: must be an object, but is: string"}},
		"array":             {raw: `[]`, want: []string{"at: Invalid value: must be an object, but is: array"}},
		"empty":             {raw: ``, want: []string{"at: Invalid value: must be valid JSON: unexpected end of JSON input (at byte 0)"}},
		"cut short":         {raw: `{"name":`, want: []string{"at: Invalid value: must be valid JSON: unexpected end of JSON input (at byte 8)"}},
		"trailing data":     {raw: `{} {}`, want: []string{"at: Invalid value: must be valid JSON: invalid character '{' after top-level value (at byte 4)"}},
	} {
		t.Run(name, func(t *testing.T) {
			var into sample
			require.Empty(t, cmp.Diff(tc.want, messages(Unmarshal([]byte(tc.raw), &into, field.NewPath("at")))))
		})
	}
}

func TestTypeMeta(t *testing.T) {
	for name, tc := range map[string]struct {
		raw      string
		want     metav1.TypeMeta
		wantErrs []string
	}{
		"other fields ignored": {raw: `{"apiVersion":"v1","kind":"K","x":[1]}`, want: metav1.TypeMeta{APIVersion: "v1", Kind: "K"}},
		"absent":               {raw: `{}`},
		"other case is absent": {raw: `{"Kind":"K"}`},
		"wrong type":           {raw: `{"kind":7}`, wantErrs: []string{"at.kind: Invalid value: must be a string, but is: number"}},
		"not JSON":             {raw: `kind: K`, wantErrs: []string{"at: Invalid value: must be valid JSON: invalid character 'k' looking for beginning of value (at byte 1)"}},
	} {
		t.Run(name, func(t *testing.T) {
			meta, errs := TypeMeta([]byte(tc.raw), field.NewPath("at"))
			require.Empty(t, cmp.Diff(tc.wantErrs, messages(errs)))
			require.Empty(t, cmp.Diff(tc.want, meta))
		})
	}
}
