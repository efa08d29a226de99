// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/corpus"
	"github.com/celset/celset/internal/testing/transcript"
)

// TestExpressions has what is known of expressions without an evaluation.
func TestExpressions(t *testing.T) {
	transcript.Run(t, "testdata/expressions.txt", func(t *testing.T, text string) string {
		expression, err := environment.Compile(t.Context(), text)
		require.NoError(t, err)
		var known []string
		if returns := expression.OutputType(); returns != "bool" {
			known = append(known, "returns "+returns)
		}
		if place, found := expression.OrderDependence(); found {
			known = append(known, fmt.Sprintf("depends on the order at %d:%d", place.Line, place.Column))
		}
		switch read := expression.ReadSet(); {
		case read.All:
			known = append(known, "reads anything")
		case len(read.Attributes) > 0:
			known = append(known, "reads "+strings.Join(namesOf(read.Attributes), " "))
		}
		if conjuncts := expression.Conjuncts(); len(conjuncts) != 1 || conjuncts[0].Text != strings.ReplaceAll(text, "'", `"`) {
			for _, c := range conjuncts {
				known = append(known, fmt.Sprintf("%d:%d %s", c.Line, c.Column, c.Text))
			}
		}
		return strings.Join(known, "\n")
	})
}

func namesOf(attributes map[device.AttributeName]bool) []string {
	var names []string
	for name := range attributes {
		names = append(names, name.Domain+"/"+name.ID)
	}
	slices.Sort(names)
	return names
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
