// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/internal/testing/cases"
)

// conjuncts lists conditions that are easy or hard to satisfy, alone and together.
var conjuncts = []string{
	"true", "devices.size() > 1", contiguous, "devices.all(d, " + index + " % 2 == 0)", "devices.all(d, " + index + " > 2)",
	"devices.exists(d, " + index + " == 3)", "devices.map(d, " + index + ").sum() > 15", "!devices.exists(d, " + index + " == 5)",
	"(" + contiguous + " || devices.size() == 2)",
}

// The reported condition is the first that leaves an exhaustive search without a solution. The reported owners are a minimal
// set that can't all keep their devices.
func TestExplanationsAreTrue(t *testing.T) {
	var explained, owned, never int
	cases.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(conjuncts), 1, 4).Draw(rt, "conjuncts")
		count := rapid.Int64Range(1, 3).Draw(rt, "count")
		p := problem(t, ring(t, 7), withConstraint(wanting("c", count), "c", strings.Join(parts, " && ")))
		p.Allocated = drawOwners(rt)
		e, err := p.Node(t.Context(), node)
		require.NoError(rt, err)
		solvable := func(allocated []*resourceapi.ResourceClaim, parts ...string) bool {
			q := problem(t, ring(t, 7), wanting("c", count))
			if len(parts) > 0 {
				q.Claims[0] = withConstraint(q.Claims[0], "c", strings.Join(parts, " && "))
			}
			q.Allocated, q.Options = allocated, []allocator.Option{allocator.WithExhaustiveSearch()}
			e, err := q.Node(t.Context(), node)
			require.NoError(rt, err)
			return e.Fits
		}
		require.Equal(rt, solvable(p.Allocated, parts...), e.Fits)
		if e.Fits {
			return
		}
		explained++
		requireFirst(rt, e, parts, func(n int) bool { return solvable(p.Allocated, parts[:n]...) })
		require.Equal(rt, !solvable(nil, parts...), e.Never)
		if e.Never {
			never++
			require.Empty(rt, e.InTheWay)
			return
		}
		owned++
		requireMinimal(rt, e, p.Allocated, func(allocated []*resourceapi.ResourceClaim) bool { return solvable(allocated, parts...) })
	})
	require.Positive(t, min(explained, owned, never), "the generator has lost a case")
}

func drawOwners(rt *rapid.T) []*resourceapi.ResourceClaim {
	var owners []*resourceapi.ResourceClaim
	byOwner := map[int][]int{}
	for i, owner := range rapid.SliceOfN(rapid.IntRange(0, 5), 7, 7).Draw(rt, "owner by device") {
		if owner > 1 {
			byOwner[owner] = append(byOwner[owner], i)
		}
	}
	for owner, devices := range byOwner {
		owners = append(owners, owning(fmt.Sprintf("owner-%d", owner), devices...))
	}
	return owners
}

// requireFirst checks the reported condition. solvable reports whether the first n conjuncts in parts have a solution.
func requireFirst(rt *rapid.T, e *explain.Explanation, parts []string, solvable func(n int) bool) {
	if e.Unmet == nil {
		require.False(rt, solvable(0))
		return
	}
	n := 0
	for solvable(n) {
		n++
	}
	require.Positive(rt, n)
	column := 1
	for _, part := range parts[:n-1] {
		column += len(part) + len(" && ")
	}
	if strings.HasPrefix(parts[n-1], "(") {
		column++
	}
	require.Equal(rt, []int{1, column}, []int{e.Unmet.Line, e.Unmet.Column})
}

func requireMinimal(rt *rapid.T, e *explain.Explanation, allocated []*resourceapi.ResourceClaim, solvable func([]*resourceapi.ResourceClaim) bool) {
	without := func(owners []explain.Owner) []*resourceapi.ResourceClaim {
		return slices.DeleteFunc(slices.Clone(allocated), func(claim *resourceapi.ResourceClaim) bool {
			return slices.ContainsFunc(owners, func(o explain.Owner) bool { return o.Claim == "default/"+claim.Name })
		})
	}
	require.True(rt, solvable(without(e.InTheWay)))
	for i := range e.InTheWay {
		require.False(rt, solvable(without(slices.Delete(slices.Clone(e.InTheWay), i, i+1))), "%s need not be named", e.InTheWay[i].Claim)
	}
}

// TestOtherNamespacesAreNotNamed checks that text and data don't name claims of other namespaces, but count them.
func TestOtherNamespacesAreNotNamed(t *testing.T) {
	hidden := 0
	cases.Check(t, func(rt *rapid.T) {
		p := problem(t, ring(t, 8), withConstraint(wanting("c", rapid.Int64Range(2, 5).Draw(rt, "count")), "shape", contiguous))
		p.Allocated = drawOwners(rt)
		foreign := map[string]bool{}
		for i, claim := range p.Allocated {
			if rapid.Bool().Draw(rt, "foreign") {
				claim.Namespace, claim.Name = fmt.Sprint("hidden-", i%2), fmt.Sprint("secret-", i)
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
		hidden++
		require.Equal(rt, others.Claims, e.OthersInTheWay.Claims)
		require.ElementsMatch(rt, others.Devices, e.OthersInTheWay.Devices)
		require.IsIncreasing(rt, append([]string{""}, e.OthersInTheWay.Devices...))
	})
	require.Positive(t, hidden, "the generator has lost a case")
}
