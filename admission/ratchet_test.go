// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUpdatesOfClasses: mistakes that are stored stay; a user can mend one after the
// other, and makes no new ones.
func TestUpdatesOfClasses(t *testing.T) {
	wrong := defined("a", "true &&\n1")
	tests := map[string]struct {
		before, after string
		refused       []string // fields
		warnings      []string
	}{
		"wrong as before": {before: wrong, after: wrong, warnings: []string{
			"was wrong before: spec.config[0].opaque.parameters.expression: Invalid value: ERROR: <input>:2:1: expected type 'bool' but found 'int' | 1 | ^"}},
		"moved": {before: wrong, after: defined("b", "true") + "," + wrong, warnings: []string{
			"was wrong before: spec.config[1].opaque.parameters.expression: Invalid value: ERROR: <input>:2:1: expected type 'bool' but found 'int' | 1 | ^"}},
		"mended":      {before: wrong, after: defined("a", "true")},
		"removed":     {before: wrong, after: ""},
		"gets wrong":  {before: defined("a", "true"), after: wrong, refused: []string{"spec.config[0].opaque.parameters.expression"}},
		"wrong anew":  {before: wrong, after: defined("a", "true &&\n 2"), refused: []string{"spec.config[0].opaque.parameters.expression"}},
		"twice wrong": {before: wrong, after: wrong + "," + defined("b", "true &&\n1"), refused: []string{"spec.config[1].opaque.parameters.expression"}, warnings: []string{"was"}},
		"one is new":  {before: defined("", "true"), after: defined("", "true") + "," + defined("", "true"), refused: []string{"spec.config[1].opaque.parameters.name"}, warnings: []string{"was"}},
		"preference as before": {before: preferred("a", "true"), after: defined("b", "true") + "," + preferred("a", "true"), warnings: []string{
			"was wrong before: spec.config[1].opaque.parameters.expression: Invalid value: ERROR: <input>:1:1: the expression must return int, it returns bool | true | ^"}},
		"preference wrong anew": {before: preferred("a", "true"), after: preferred("a", "false"), refused: []string{"spec.config[0].opaque.parameters.expression"}},
		"preference mended":     {before: preferred("a", "true"), after: preferred("a", "1")},
		"warned anew":           {before: "", after: defined("a", "devices[0] == devices[1]"), warnings: []string{"spec.config[0]: a, line 1, column 8: "}},
		"warned again":          {before: defined("a", "devices[0] == devices[1]"), after: defined("a", "devices[0] == devices[1]") + "," + defined("b", "true")},
	}
	checker := newChecker(t, Options{})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			judge := func(config string) Verdict {
				return judged(checker.Class(t.Context(), classOf(t, "mla", "config: ["+config+"]")))
			}
			got := ratcheted(judge(test.before), judge(test.after))
			var fields []string
			for _, err := range got.Errors {
				fields = append(fields, err.Field)
			}
			require.Equal(t, test.refused, fields)
			require.Len(t, got.Warnings, len(test.warnings))
			for i, text := range test.warnings {
				require.Contains(t, got.Warnings[i], text)
			}
		})
	}
}
