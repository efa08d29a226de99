// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cmd/kubectl-celset/answers"
)

// claimWith returns a claim whose definition has the given lines as its expression.
func claimWith(expression string) string {
	return `apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: a}
spec:
  devices:
    requests: [{name: gpus, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]
    constraints: [{matchAttribute: celset.dev/c}]
    config:
    - opaque:
        driver: celset.dev
        parameters:
          apiVersion: celset.dev/v1alpha1
          kind: CELDeviceConstraint
          name: c
` + expression
}

// TestProblemPositions checks that a mistake is at the position of the character "¿" in the documents. The answer is about the
// documents without this character.
func TestProblemPositions(t *testing.T) {
	for name, c := range map[string]struct{ text, message string }{
		"literal":        {claimWith("          expression: |\n            devices.all(d, d.driver == 'ü😀') &&\n              devices.all(d, 'ü😀' == ¿unknown)\n"), "undeclared reference to 'unknown'"},
		"literal first":  {claimWith("          expression: |\n            ¿unknown\n"), "undeclared reference to 'unknown'"},
		"folded":         {claimWith("          expression: >\n            devices.all(d, d.driver == 'ü😀') &&\n            ¿unknown\n"), "undeclared reference to 'unknown'"},
		"plain":          {claimWith("          expression: devices.all(d, d.driver == 'x') && ¿unknown\n"), "undeclared reference to 'unknown'"},
		"plain lines":    {claimWith("          expression: devices.all(d, d.driver == 'x') &&\n            ¿unknown\n"), "undeclared reference to 'unknown'"},
		"double quoted":  {claimWith("          expression: \"devices.all(d, d.driver == \\\"x\\u00e9\\\") &&\\n ¿unknown\"\n"), "undeclared reference to 'unknown'"},
		"single quoted":  {claimWith("          expression: 'devices.all(d, d.driver == ''x'') && ¿unknown'\n"), "undeclared reference to 'unknown'"},
		"unknown field":  {claimWith("          expression: 'true'\n") + "  ¿device: {}\n", `unknown field "spec.device"`},
		"in a sequence":  {"apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: é, ¿nam: b}\n", `unknown field "metadata.nam"`},
		"syntax":         {"apiVersion: v1\n¿kind: [\n", "did not find expected node content"},
		"not an object":  {"¿just text\n", "a document must be an object with apiVersion and kind"},
		"ignored":        {"apiVersion: apps/v1\n¿kind: Deployment\nmetadata: {name: d}\n", "Deployment d is ignored: the kind has no effect on devices"},
		"misspelt kind":  {"apiVersion: resource.k8s.io/v1\n¿kind: ResourceClam\nmetadata: {name: d}\n", `did you mean kind "ResourceClaim"`},
		"blank lines":    {claimWith("          expression: >-\n\n            devices.all(d, d.driver == 'ü😀') &&\n\n\n              devices.size() > 0 &&\n\n            ¿unknown\n"), "undeclared reference to 'unknown'"},
		"indicator":      {claimWith("          expression: |2\n              devices.all(d, d.driver == 'ü😀') &&\n              ¿unknown\n"), "undeclared reference to 'unknown'"},
		"continued":      {claimWith("          expression: \"devices.all(d, \\\n            d.driver == 'ü😀') && \\\n            ¿unknown\"\n"), "undeclared reference to 'unknown'"},
		"break, escape":  {claimWith("          expression: \"true &&\n            \\n\\n ¿unknown\"\n"), "undeclared reference to 'unknown'"},
		"wrong type":     {"apiVersion: v1\nkind: Pod\nmetadata: {name: é}\nspec:\n  resourceClaims: [{name: a}, {¿name: y, resourceClaimName: a}]\n", "cannot unmarshal bool into Go struct field"},
		"wrong item":     {strings.Replace(claimWith("          expression: 'true'\n"), "count: 2", "¿count: two", 1), "cannot unmarshal string into Go struct field"},
		"wrong kind":     {"apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: é}\nspec:\n  ¿selectors: {cel: {}}\n", "cannot unmarshal object into Go struct field"},
		"duplicate keys": {"apiVersion: v1\nkind: Pod\n¿kind: Pod\nkind: Pod\n", "key \"kind\" already set in map\n  line 6: key \"kind\" already set in map"},
		"missing class":  {strings.Replace(claimWith("          expression: 'true'\n"), "deviceClassName: gpu.nvidia.com", "¿deviceClassName: gpu.nvidla.com", 1), "no DeviceClass has this name"},
		"missing object": {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: c}]\n  resourceClaims: [{name: x, resourceClaimTemplateName: none}]\n", `there is no ResourceClaimTemplate "none"`},
		"item of a list": {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: n1}}\n- apiVersion: resource.k8s.io/v1\n  kind: ResourceClaim\n  metadata: {name: x}\n  ¿specs: {}\n", `unknown field "specs"`},
		"json":           {`{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "x"}, ` + "\n " + `¿"specs": {}}`, `unknown field "specs"`},
		"placement":      {"apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: p}\nspec: {¿predicate: []}\n", `unknown field "spec.predicate"`},
	} {
		t.Run(name, func(t *testing.T) {
			text := "# é😀\n---\n" + c.text
			before, after, found := strings.Cut(text, "¿")
			answer := ask[answers.TryAnswer](t, empty(), answers.Try, answers.TryQuestion{Documents: before + after, Machine: "hgx-h100", Nodes: 1})
			require.NotEmpty(t, answer.Problems)
			at := answer.Problems[0]
			require.Contains(t, at.Message, c.message)
			if !found {
				require.Equal(t, 3, at.Line)
				return
			}
			require.Equal(t, strings.Count(before, "\n")+1, at.Line)
			line := before[strings.LastIndex(before, "\n")+1:]
			units := 0
			for _, r := range line {
				units++
				if r > 0xffff {
					units++
				}
			}
			if c.message == "did not find expected node content" || c.message == "a document must be an object with apiVersion and kind" {
				units = 0
			}
			require.Equal(t, units+1, at.Column, at.Message)
		})
	}
}
