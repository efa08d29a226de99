// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
)

// derived is a claim for two devices with the same derived color.
func derived(expression string) *claimBuilder {
	return claim("c").want("x", 2).derive(color, expression).match(color)
}

func TestDerivedAttributes(t *testing.T) {
	const published = "device.attributes['mla.example.com'].color"
	five := []*sliceBuilder{slice("1", ring(5)...)}
	lists := []*sliceBuilder{slice("1",
		newDevice("a", attrs{"roots": []int64{1, 2}}), newDevice("b", attrs{"roots": []int64{3}}), newDevice("c", attrs{"roots": []int64{2, 3}}))}
	for name, test := range map[string]struct {
		scenario
		want []string
	}{
		"int":                  {scenario{slices: five, claims: []*claimBuilder{derived(index + " % 3")}}, []string{"x=mla-0", "x=mla-3"}},
		"string":               {scenario{slices: five, claims: []*claimBuilder{derived(index + " > 2 ? 'high' : string(" + index + ")")}}, []string{"x=mla-3", "x=mla-4"}},
		"bool":                 {scenario{slices: five, claims: []*claimBuilder{derived(index + " == 0")}}, []string{"x=mla-1", "x=mla-2"}},
		"version":              {scenario{slices: five, claims: []*claimBuilder{derived("semver(string(" + index + " % 4) + '.0.0')")}}, []string{"x=mla-0", "x=mla-4"}},
		"list":                 {scenario{features: listsOn, slices: lists, claims: []*claimBuilder{derived("device.attributes['mla.example.com'].roots")}}, []string{"x=a", "x=c"}},
		"distinct":             {scenario{slices: five, claims: []*claimBuilder{claim("c").want("x", 2).derive(color, index+" / 2").distinct(color)}}, []string{"x=mla-0", "x=mla-2"}},
		"overrides":            {scenario{slices: []*sliceBuilder{colored("red", "blue", "red")}, claims: []*claimBuilder{derived("'any'")}}, []string{"x=a", "x=b"}},
		"not for selectors":    {scenario{slices: []*sliceBuilder{colored("red", "blue", "blue")}, claims: []*claimBuilder{claim("c").want("x", 2, published+" == 'blue'").derive(color, "'red'").match(color)}}, []string{"x=b", "x=c"}},
		"not for CEL":          {scenario{slices: []*sliceBuilder{colored("red", "blue", "blue")}, claims: []*claimBuilder{claim("c").want("x", 2).derive(color, "'red'").cel("blue").define("blue", "devices.all(d, d.attributes['mla.example.com'].color == 'blue')")}}, []string{"x=b", "x=c"}},
		"only of that request": {scenario{slices: []*sliceBuilder{colored("red", "blue", "red", "blue")}, claims: []*claimBuilder{claim("c").want("x", 1).derive(color, "'blue'").want("y", 1).match(color)}}, []string{"x=a", "y=b"}},
		"of an alternative": {scenario{slices: five, claims: []*claimBuilder{func() *claimBuilder {
			even := sub("even", 2)
			even.DerivedAttributes = []resourceapi.DeviceDerivedAttribute{{Name: color, Expression: index + " % 2"}}
			return claim("c").firstAvailable("x", sub("none", 2), even).match(color)
		}()}}, []string{"x/even=mla-0", "x/even=mla-2"}},
		// Nobody compares it.
		"unused": {scenario{slices: five, claims: []*claimBuilder{claim("c").want("x", 1).derive(color, "1 / 0")}}, []string{"x=mla-0"}},
		// The device is in use.
		"not reached": {scenario{slices: five, inUse: []string{"mla-0"}, claims: []*claimBuilder{derived("1 / " + index)}}, []string{"x=mla-2", "x=mla-3"}},
	} {
		t.Run(name, func(t *testing.T) { test.requireDevices(t, test.want...) })
	}
}

func TestDerivedAttributeErrors(t *testing.T) {
	const where = "claim c, request x: derived attribute " + color + ": "
	for name, test := range map[string]struct{ expression, message string }{
		"compile":           {"devicex", where + "compile: "},
		"run":               {"1 / " + index, where + "evaluate on device mla.example.com/pool-1/mla-0: division by zero"},
		"missing attribute": {"device.attributes['mla.example.com'].color", where + "evaluate on device mla.example.com/pool-1/mla-0: no such key: color. consider using CEL optional chaining"},
	} {
		t.Run(name, func(t *testing.T) {
			scenario{slices: []*sliceBuilder{slice("1", ring(3)...)}, claims: []*claimBuilder{derived(test.expression)}}.requireError(t, test.message)
		})
	}
	t.Run("on a later device", func(t *testing.T) {
		scenario{slices: []*sliceBuilder{slice("1", ring(3)...)}, claims: []*claimBuilder{derived("1 / (" + index + " - 1)")}}.
			requireError(t, "evaluate on device mla.example.com/pool-1/mla-1: division by zero")
	})
	t.Run("distinct", func(t *testing.T) {
		scenario{slices: []*sliceBuilder{slice("1", ring(3)...)}, claims: []*claimBuilder{claim("c").want("x", 1).derive(color, "1 / 0").distinct(color)}}.
			requireError(t, where+"evaluate on device mla.example.com/pool-1/mla-0: division by zero")
	})
	t.Run("all", func(t *testing.T) {
		scenario{slices: []*sliceBuilder{slice("1", ring(3)...)}, claims: []*claimBuilder{claim("c").wantAll("x").derive(color, "1 / 0").match(color)}}.
			requireError(t, where+"evaluate on device mla.example.com/pool-1/mla-0: division by zero")
	})
}

// The value of an expression is remembered for a device, by whatever name and
// for whichever request; errors are not.
func TestDerivedAttributesAreRemembered(t *testing.T) {
	s := scenario{
		slices: []*sliceBuilder{slice("1", ring(2)...)},
		claims: []*claimBuilder{claim("c").want("x", 1).derive(color, index).want("y", 1).derive(driver+"/other", index)},
	}.search(t)
	x, y := s.requests[0][0][0], s.requests[0][1][0]
	first, err := s.evaluator.Attribute(&x.Request, s.inventory.Candidates[1], color)
	require.NoError(t, err)
	require.Equal(t, int64(1), *first.IntValue)
	again, err := s.evaluator.Attribute(&y.Request, s.inventory.Candidates[1], driver+"/other")
	require.NoError(t, err)
	require.Same(t, first, again)
	other, err := s.evaluator.Attribute(&x.Request, s.inventory.Candidates[0], color)
	require.NoError(t, err)
	require.Equal(t, int64(0), *other.IntValue)
}

func TestInterruptedDerivedAttribute(t *testing.T) {
	s := scenario{slices: []*sliceBuilder{slice("1", ring(1)...)}, claims: []*claimBuilder{claim("c").want("x", 1).derive(color, slow)}}.search(t)
	ctx := cancelledWhenWatched(t, errors.New("moved"))
	s.evaluator.Context, s.work.ctx = ctx, ctx
	_, err := s.evaluator.Attribute(&s.requests[0][0][0].Request, s.inventory.Candidates[0], color)
	require.ErrorContains(t, err, "operation interrupted")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, context.Cause(ctx))
}
