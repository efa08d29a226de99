// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestReferences(t *testing.T) {
	for name, tc := range map[string]struct {
		devices string
		want    []Reference
		// wantHas defaults to whether there are references.
		wantHas bool
	}{
		"no constraints": {devices: `{}`},
		"of others": {devices: `
constraints:
- matchAttribute: example.com/numa
- distinctAttribute: example.com/nic
- matchAttribute: celset.dev.example.com/ring4
- matchAttribute: Celset.dev/ring4
- requests: [a]
`},
		"in order, among others": {
			devices: `
constraints:
- {matchAttribute: celset.dev/b, requests: [r, s/t]}
- matchAttribute: example.com/numa
- matchAttribute: celset.dev/a
- {matchAttribute: celset.dev/b, requests: []}
`,
			want: []Reference{
				{Index: 0, Requests: []string{"r", "s/t"}, Name: "b"},
				{Index: 2, Name: "a"},
				{Index: 3, Requests: []string{}, Name: "b"},
			},
		},
		"distinctAttribute": {devices: `constraints: [{distinctAttribute: celset.dev/a}]`, wantHas: true},
		"malformed":         {devices: `constraints: [{matchAttribute: celset.dev/}]`, want: []Reference{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := claimOf(t, tc.devices)
			require.Empty(t, cmp.Diff(tc.want, References(&claim.Spec)))
			require.Equal(t, tc.wantHas || len(tc.want) > 0, HasReference(claim))
		})
	}
}

func TestCoveredClasses(t *testing.T) {
	claim := claimOf(t, `
requests:
- {name: z, exactly: {deviceClassName: c1}}
- {name: m, firstAvailable: [{name: big, deviceClassName: c2}, {name: small, deviceClassName: c3}, {name: old, deviceClassName: c1}]}
- {name: a, exactly: {deviceClassName: c2}}
- {name: unset, exactly: {}}
- {name: neither}
`)
	for name, tc := range map[string]struct{ requests, want []string }{
		"all":                    {want: []string{"c1", "c2", "c3"}},
		"all, empty list":        {requests: []string{}, want: []string{"c1", "c2", "c3"}},
		"one":                    {requests: []string{"z"}, want: []string{"c1"}},
		"order of claim":         {requests: []string{"a", "z"}, want: []string{"c1", "c2"}},
		"each alternative":       {requests: []string{"m"}, want: []string{"c2", "c3", "c1"}},
		"one alternative":        {requests: []string{"m/small"}, want: []string{"c3"}},
		"alternative and parent": {requests: []string{"m/small", "m"}, want: []string{"c2", "c3", "c1"}},
		"class once":             {requests: []string{"a", "m/big"}, want: []string{"c2"}},
		"no class":               {requests: []string{"unset", "neither"}},
		"unknown":                {requests: []string{"small", "z/big"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, cmp.Diff(tc.want, coveredClasses(&claim.Spec.Devices, tc.requests)))
		})
	}
}
