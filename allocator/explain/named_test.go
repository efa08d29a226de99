// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/internal/testing/cases"
)

// of moves a claim into another namespace.
func of(namespace string, claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	claim.Namespace = namespace
	return claim
}

// Who looks at a claim may know of the others in its namespace.
func TestClaimsOfOtherNamespacesAreCounted(t *testing.T) {
	for name, test := range map[string]struct {
		allocated []*resourceapi.ResourceClaim
		all       bool
		want      string
	}{
		"one":              {allocated: []*resourceapi.ResourceClaim{of("other", owning("a", 0, 1, 2, 3, 4))}, want: "a claim of another namespace with mla-0, mla-1, mla-2, ..."},
		"several":          {allocated: []*resourceapi.ResourceClaim{of("x", owning("a", 3, 1)), of("y", owning("a", 2, 4)), of("x", owning("b", 5))}, want: "3 claims of other namespaces with mla-1, mla-2, mla-3, ..."},
		"own and others":   {allocated: []*resourceapi.ResourceClaim{of("x", owning("a", 1)), owning("b", 2, 3, 4), of("y", owning("c", 5))}, want: "claim default/b with mla-2, mla-3, mla-4, 2 claims of other namespaces with mla-1, mla-5"},
		"same name":        {allocated: []*resourceapi.ResourceClaim{of("x", owning("c", 0, 1, 2, 3, 4))}, want: "a claim of another namespace with mla-0, mla-1, mla-2, ..."},
		"read by somebody": {allocated: []*resourceapi.ResourceClaim{of("x", owning("a", 3, 1)), of("y", owning("b", 2, 4))}, all: true, want: "claim x/a with mla-1, mla-3, claim y/b with mla-2, mla-4"},
	} {
		t.Run(name, func(t *testing.T) {
			p := problem(t, ring(t, 8), such(wanting("c", 8), "ring8", contiguous))
			p.Allocated, p.NamesAll = test.allocated, test.all
			e, err := p.Node(t.Context(), node)
			require.NoError(t, err)
			require.Contains(t, e.String(), "; in the way: "+test.want)
			require.Equal(t, test.all, e.OthersInTheWay == nil)
		})
	}
}

// TestNothingIsSaidOfOtherNamespaces: whatever is in the way, neither text nor data has a word
// of it, and the number is right.
func TestNothingIsSaidOfOtherNamespaces(t *testing.T) {
	told := 0
	cases.Check(t, func(rt *rapid.T) {
		p := problem(t, ring(t, 8), such(wanting("c", rapid.Int64Range(2, 5).Draw(rt, "count")), "shape", contiguous))
		p.Allocated = drawOwners(rt)
		foreign := map[string]bool{}
		for i, claim := range p.Allocated {
			if rapid.Bool().Draw(rt, "foreign") {
				of(fmt.Sprint("hidden-", i%2), claim).Name = fmt.Sprint("secret-", i)
				foreign[claim.Namespace+"/"+claim.Name] = true
			}
		}
		e, err := p.Node(t.Context(), node)
		require.NoError(rt, err)
		raw, err := json.Marshal(e)
		require.NoError(rt, err)
		for _, text := range []string{e.String(), string(raw)} {
			require.False(rt, strings.Contains(text, "hidden") || strings.Contains(text, "secret"), text)
		}
		p.NamesAll = true
		all, err := p.Node(t.Context(), node)
		require.NoError(rt, err)
		require.Nil(rt, all.OthersInTheWay)
		var others explain.Others
		var own []string
		for _, owner := range all.InTheWay {
			if foreign[owner.Claim] {
				others.Claims++
				others.Devices = append(others.Devices, owner.Devices...)
			} else {
				own = append(own, owner.Claim)
			}
		}
		var named []string
		for _, owner := range e.InTheWay {
			named = append(named, owner.Claim)
		}
		require.Equal(rt, own, named)
		if others.Claims == 0 {
			require.Nil(rt, e.OthersInTheWay)
			return
		}
		told++
		require.Equal(rt, others.Claims, e.OthersInTheWay.Claims)
		require.ElementsMatch(rt, others.Devices, e.OthersInTheWay.Devices)
		require.IsIncreasing(rt, append([]string{""}, e.OthersInTheWay.Devices...))
	})
	require.Positive(t, told, "the generator has lost a case")
}
