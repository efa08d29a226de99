// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/corpus"
)

func TestConjuncts(t *testing.T) {
	e, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	for text, want := range map[string][]device.Conjunct{
		"true": {{Text: "true", Line: 1, Column: 1}},
		"devices.size() == 2 &&\n  // neighbours\n  (devices.all(d, d.driver == 'a  b') || false)": {
			{Text: "devices.size() == 2", Line: 1, Column: 1},
			{Text: "devices.all(d, d.driver == \"a  b\") || false", Line: 3, Column: 4},
		},
		"1 + 1 == 2 && (2 < 3 && devices.exists_one(d, has(d.attributes)) && true)": {
			{Text: "1 + 1 == 2", Line: 1, Column: 1},
			{Text: "2 < 3", Line: 1, Column: 16},
			{Text: "devices.exists_one(d, has(d.attributes))", Line: 1, Column: 25},
			{Text: "true", Line: 1, Column: 69},
		},
		"size(devices) == 2 && has(devices[0].driver)": {
			{Text: "size(devices) == 2", Line: 1, Column: 1}, {Text: "has(devices[0].driver)", Line: 1, Column: 23},
		},
		"-1 < 0 && !(1 in [2]) && (1 > 0 ? true : false)": {
			{Text: "-1 < 0", Line: 1, Column: 1}, {Text: "!(1 in [2])", Line: 1, Column: 11}, {Text: "(1 > 0) ? true : false", Line: 1, Column: 27},
		},
		"devices[?0].hasValue() && [1][0] == 1 && {'a': 1}['a'] == 1": {
			{Text: "devices[?0].hasValue()", Line: 1, Column: 1}, {Text: "[1][0] == 1", Line: 1, Column: 27}, {Text: "{\"a\": 1}[\"a\"] == 1", Line: 1, Column: 42},
		},
		"true || (false && false)":                    {{Text: "true || false && false", Line: 1, Column: 1}},
		"cel.bind(n, devices.size(), n > 1 && n < 3)": {{Text: "cel.bind(n, devices.size(), n > 1 && n < 3)", Line: 1, Column: 1}},
	} {
		expression, err := e.Compile(t.Context(), text)
		require.NoError(t, err)
		require.Equal(t, want, expression.Conjuncts(), text)
	}
}

// Each conjunct of the corpus is an expression of its own, and it is its only conjunct.
func TestConjunctsOfTheCorpusCompile(t *testing.T) {
	e, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	for _, entry := range corpus.Expressions() {
		whole, err := e.Compile(t.Context(), entry.Text)
		require.NoError(t, err)
		for _, conjunct := range whole.Conjuncts() {
			part, err := e.Compile(t.Context(), conjunct.Text)
			require.NoError(t, err, conjunct.Text)
			again := part.Conjuncts()
			require.Len(t, again, 1)
			require.Equal(t, conjunct.Text, again[0].Text)
		}
	}
}
