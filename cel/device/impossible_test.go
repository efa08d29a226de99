// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/transcript"
)

// TestImpossibleNames compiles expressions and checks the reports of names that no device or node can have.
func TestImpossibleNames(t *testing.T) {
	devices, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	nodes, err := device.NewNodeEnvironment(cel.Config{})
	require.NoError(t, err)
	transcript.Run(t, "testdata/names.txt", func(t *testing.T, text string) string {
		environment := devices
		if strings.Contains(text, "nodes") {
			environment = nodes
		}
		expression, variable, _ := strings.Cut(text, " with ")
		var variables []v1alpha1.Variable
		if variable != "" {
			variables = append(variables, v1alpha1.Variable{Name: "v", Expression: variable})
		}
		_, err := environment.Compile(t.Context(), expression, variables...)
		if err == nil {
			return ""
		}
		failure, ok := errors.AsType[*cel.Error](err)
		require.True(t, ok)
		require.Equal(t, cel.ReasonInvalid, failure.Reason)
		require.Positive(t, failure.Line)
		return failure.Error()
	})
}

// TestSuspicionsOfSelectors checks the reports for device selectors. Kubernetes accepts impossible names, so the selectors
// compile.
func TestSuspicionsOfSelectors(t *testing.T) {
	selectors, err := device.NewSelectorEnvironment(cel.Config{})
	require.NoError(t, err)
	transcript.Run(t, "testdata/selector_suspicions.txt", func(t *testing.T, text string) string { return suspicionsOf(t, selectors, text) })
}

// TestSuspicions checks the reports for expressions that compile.
func TestSuspicions(t *testing.T) {
	devices, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	nodes, err := device.NewNodeEnvironment(cel.Config{})
	require.NoError(t, err)
	transcript.Run(t, "testdata/suspicions.txt", func(t *testing.T, text string) string {
		environment := devices
		if strings.Contains(text, "nodes") {
			environment = nodes
		}
		return suspicionsOf(t, environment, text)
	})
}

func suspicionsOf(t *testing.T, environment *device.Environment, text string) string {
	expression, err := environment.Compile(t.Context(), text)
	require.NoError(t, err)
	var lines []string
	for _, found := range expression.Suspicions() {
		lines = append(lines, fmt.Sprintf("%d:%d %s", found.Line, found.Column, found.Message))
	}
	return strings.Join(lines, "\n")
}
