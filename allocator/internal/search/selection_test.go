// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	dracel "k8s.io/dynamic-resource-allocation/cel"

	"github.com/celset/celset/allocator/internal/fixture"
	"github.com/celset/celset/allocator/internal/plan"
	"github.com/celset/celset/allocator/internal/selection"
)

// Verdicts on devices are cached separately for each group of requests with equal selectors.
func TestSelectionIsRemembered(t *testing.T) {
	s := scenario{Slices: []*sliceBuilder{slice("1", ring(2)...)}, Claims: []*claimBuilder{claim("c").Want("a", 1, index+" == 0").Want("b", 1).Want("c", 2, index+" == 0")}}.search(t)
	a, b := s.Requests[0][0][0], s.Requests[0][1][0]
	for range 2 {
		first, err := a.isSelected(s.Inventory.Candidates[0])
		require.NoError(t, err)
		second, err := a.isSelected(s.Inventory.Candidates[1])
		require.NoError(t, err)
		require.Equal(t, []bool{true, false}, []bool{first, second})
	}
	remembered := func(r *Request) []selection.Verdict {
		return []selection.Verdict{r.group.selectors.Verdict(0), r.group.selectors.Verdict(1)}
	}
	require.Equal(t, []selection.Verdict{selection.Selected, selection.NotSelected}, remembered(a))
	require.Equal(t, []selection.Verdict{selection.Unknown, selection.Unknown}, remembered(b))
	require.Equal(t, []selection.Verdict{selection.Selected, selection.NotSelected}, remembered(s.Requests[0][2][0]))
}

// slow is an expression that runs long enough to notice that the context has ended.
const slow = "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, a + b + c >= 0)))"

func TestInterruptedSelector(t *testing.T) {
	s := scenario{Slices: []*sliceBuilder{slice("1", ring(1)...)}, Claims: []*claimBuilder{claim("c").Want("mla", 1, slow)}}.search(t)
	cause := errors.New("moved")
	for _, want := range []error{nil, cause} {
		ctx := cancelledWhenWatched(t, want)
		s.Ctx, s.evaluator.Context, s.Work.Ctx = ctx, ctx, ctx
		_, err := s.Requests[0][0][0].isSelected(s.Inventory.Candidates[0])
		require.ErrorContains(t, err, "operation interrupted")
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, context.Cause(ctx))
	}
}

// rowOf returns a search whose selectors' verdicts are stored in the given cache.
func (s scenario) rowOf(t testing.TB, cache *plan.Cache, selectors *dracel.Cache) *Search {
	t.Helper()
	planner := fixture.Scenario(s.with(func(o *plan.Options) { o.Cache, o.SharesCache = cache, true })).Planner(t)
	planner.Selectors = selectors
	return s.plannedBy(t, planner)
}

// rememberedBy returns the cached verdicts of the first request's selectors.
func rememberedBy(s *Search) *selection.Row {
	return s.SelectionRow(&s.Requests[0][0][0].Request)
}

// Nodes of one hardware type share the verdicts of equal selectors.
func TestSelectionsAreShared(t *testing.T) {
	cache, selectors := plan.NewCache(), dracel.NewCache(10, dracel.Features{})
	const three, claim = "slice 1; devices 3 mla-# index=#; ", "claim c; want x 1 if $device.index > 0"
	s := given(t, three+claim).rowOf(t, cache, selectors)
	found, err := s.Run()
	require.NoError(t, err)
	require.True(t, found)
	for name, test := range map[string]struct {
		statements string
		shared     bool
	}{
		"same":           {three + claim, true},
		"other claim":    {three + "claim d; want other 3 admin if $device.index > 0", true},
		"other names":    {"slice 2 pool=pool-2/2/1; devices 3 other-# index=#; " + claim, true},
		"in the class":   {"class same if $device.index > 0; " + three + "claim c; want x 1 class=same", true},
		"other class":    {"class odd if $device.index % 2 == 1; " + three + "claim c; want x 1 class=odd if $device.index > 0", false},
		"several":        {"class twice if $device.index > 0; if $device.index > 0; " + three + "claim c; want x 1 class=twice", false},
		"other selector": {three + "claim c; want x 1 if $device.index >0", false},
		"none":           {three + "claim c; want x 1", false},
		"other hardware": {"devices 4 mla-# index=#; " + claim, false},
	} {
		t.Run(name, func(t *testing.T) {
			other := given(t, test.statements).rowOf(t, cache, selectors)
			require.NotNil(t, rememberedBy(other))
			require.Equal(t, test.shared, rememberedBy(s) == rememberedBy(other))
		})
	}
	others := dracel.NewCache(10, dracel.Features{EnableListTypeAttributes: true})
	require.NotSame(t, rememberedBy(s), rememberedBy(given(t, three+claim).rowOf(t, cache, others)), "selectors mean something else")
}

// If the slices select nodes for single devices, the verdicts depend on the node. Nodes then do not share verdicts.
func TestSelectionsByNodeAreNotShared(t *testing.T) {
	cache, selectors := plan.NewCache(), dracel.NewCache(10, dracel.Features{})
	for want, nodes := range map[string][3]string{
		"x=a": {"node-1", "node-2", "node-1"}, "x=b": {"node-2", "node-1", "node-1"}, "x=c": {"node-2", "node-2", "node-1"},
	} {
		s := given(t, fmt.Sprintf(`slice 1 per-device; device a index=0 +node=%s; device b index=1 +node=%s; device c index=2 +node=%s
claim c; want x 1 if $device.index >= 0`, nodes[0], nodes[1], nodes[2]))
		one := s.rowOf(t, cache, selectors)
		require.Nil(t, rememberedBy(one))
		found, err := one.Run()
		require.NoError(t, err)
		require.True(t, found)
		chosen := one.Solution.Choices[0]
		require.Equal(t, want, chosen.Request.Name+"="+chosen.ID.Device.String())
	}
}

// A failing selector is not cached. It fails again in each search that reaches the device.
func TestFailingSelectorsAreNotRemembered(t *testing.T) {
	cache, selectors := plan.NewCache(), dracel.NewCache(10, dracel.Features{})
	s := scenario{Slices: []*sliceBuilder{slice("1", ring(4)...)}, Claims: []*claimBuilder{claim("c").Want("x", 2, "1 / ("+index+" - 2) <= 0")}}
	for range 2 {
		one := s.rowOf(t, cache, selectors)
		found, err := one.Run()
		require.NoError(t, err)
		require.True(t, found, "the device is not needed")
	}
	s.InUse = []string{"mla-0"}
	for range 2 {
		one := s.rowOf(t, cache, selectors)
		_, err := one.Run()
		require.ErrorContains(t, err, "claim default/c: selector #0 on device mla.example.com/pool-1/mla-2: CEL runtime error: division by zero")
		require.Equal(t, selection.Unknown, rememberedBy(one).Of(2))
	}
}

// The value of a derived attribute is cached for each device and expression, regardless of the attribute's name and the
// request. Errors are not cached.
func TestDerivedAttributesAreRemembered(t *testing.T) {
	s := scenario{
		Slices: []*sliceBuilder{slice("1", ring(2)...)},
		Claims: []*claimBuilder{claim("c").Want("x", 1).Derive(color, index).Want("y", 1).Derive(driver+"/other", index)},
	}.search(t)
	x, y := s.Requests[0][0][0], s.Requests[0][1][0]
	first, err := s.evaluator.Attribute(&x.Request, s.Inventory.Candidates[1], color)
	require.NoError(t, err)
	require.Equal(t, int64(1), *first.IntValue)
	again, err := s.evaluator.Attribute(&y.Request, s.Inventory.Candidates[1], driver+"/other")
	require.NoError(t, err)
	require.Same(t, first, again)
	other, err := s.evaluator.Attribute(&x.Request, s.Inventory.Candidates[0], color)
	require.NoError(t, err)
	require.Equal(t, int64(0), *other.IntValue)
}

func TestInterruptedDerivedAttribute(t *testing.T) {
	s := scenario{Slices: []*sliceBuilder{slice("1", ring(1)...)}, Claims: []*claimBuilder{claim("c").Want("x", 1).Derive(color, slow)}}.search(t)
	ctx := cancelledWhenWatched(t, errors.New("moved"))
	s.evaluator.Context, s.Work.Ctx = ctx, ctx
	_, err := s.evaluator.Attribute(&s.Requests[0][0][0].Request, s.Inventory.Candidates[0], color)
	require.ErrorContains(t, err, "operation interrupted")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, context.Cause(ctx))
}
