// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// outcomes runs a file and returns the result of each case by name.
func outcomes(t *testing.T, content string) map[string]Result {
	t.Helper()
	report, err := Run(t.Context(), []string{written(t, content)}, options)
	require.NoError(t, err)
	require.Empty(t, report.Files[0].Mistakes)
	results := map[string]Result{}
	for _, c := range report.Files[0].Cases {
		results[c.Name] = c
	}
	return results
}

// TestCasesThatCanNotFail checks that an expectation does not pass because there is nothing that it could be compared with.
func TestCasesThatCanNotFail(t *testing.T) {
	for want, expect := range map[string]string{
		"expect.requests: is empty":  "{requests: {}}",
		"expect.none: is blank":      "{none: ' '}",
		"expect.errors[0]: is blank": `{errors: ["\t"]}`,
	} {
		report, err := Run(t.Context(), []string{written(t, header+"cases: [{name: a, expect: "+expect+"}]")}, options)
		require.NoError(t, err)
		var text strings.Builder
		require.NoError(t, report.Print(&text))
		require.Contains(t, text.String(), want)
	}
	const unknown = "claim: {devices: {requests: [{name: gpu, exactly: {deviceClassName: unknown}}]}}"
	results := outcomes(t, header+`machine: {name: hgx-h100}
claim: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
cases:
- {name: unknown request, expect: {requests: {gpus: []}}}
- {name: no devices, `+unknown+`, expect: {devices: []}}
- {name: no nodes, `+unknown+`, expect: {nodesThatFit: []}}
- {name: no request, `+unknown+`, expect: {requests: {gpu: []}}}
- {name: steps, `+unknown+`, expect: {steps: {atMost: 10}}}
- {name: empty set, claim: {devices: {}}, expect: {satisfies: "devices.all(d, false)"}}
- {name: steps of a reason, `+unknown+`, expect: {none: unknown, steps: {atMost: 10}}}
- {name: request, expect: {requests: {gpu: [gpu-3]}}}
`)
	for _, name := range []string{"unknown request", "no devices", "no nodes", "no request", "steps", "empty set"} {
		require.Equal(t, Failed, results[name].Outcome, name)
	}
	require.Contains(t, results["steps"].Failures[0].Got, "unknown")
	for _, name := range []string{"steps of a reason", "request"} {
		require.Equal(t, Passed, results[name].Outcome, "%s: %v", name, results[name])
	}
	results = outcomes(t, header+`cases:
- name: no objects
  objects: [{apiVersion: resource.k8s.io/v1, kind: ResourceClam, metadata: {name: a}}]
  expect: {errors: []}
- name: pod without claims
  subject: pod/a
  objects: [{apiVersion: v1, kind: Pod, metadata: {name: a}}]
  expect: {errors: []}
`)
	require.Contains(t, results["no objects"].Error, "no object to check")
	require.Contains(t, results["pod without claims"].Error, "no claim, template or group")
}
