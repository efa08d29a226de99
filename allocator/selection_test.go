// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/selection"
)

func TestSelectors(t *testing.T) {
	four := []*sliceBuilder{slice("1", ring(4)...)}
	even := classOf("even", index+" % 2 == 0")
	for name, test := range map[string]struct {
		class     *resourceapi.DeviceClass
		selectors []string
		want      []string
	}{
		"request":             {selectors: []string{index + " >= 2"}, want: []string{"mla=mla-2"}},
		"all must be true":    {selectors: []string{index + " >= 1", index + " != 1"}, want: []string{"mla=mla-2"}},
		"class":               {class: classOf("last", index+" == 3"), want: []string{"mla=mla-3"}},
		"class and request":   {class: even, selectors: []string{index + " > 0"}, want: []string{"mla=mla-2"}},
		"none":                {class: even, selectors: []string{index + " == 1"}},
		"class before others": {class: classOf("none", "false"), selectors: []string{"device.attributes['x'].y == 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := claim("c").want("mla", 1, test.selectors...)
			s := scenario{slices: four, claims: []*claimBuilder{c}}
			if test.class != nil {
				c.class(test.class.Name)
				s.classes = []*resourceapi.DeviceClass{test.class}
			}
			s.requireDevices(t, test.want...)
		})
	}
}

func TestSelectorErrors(t *testing.T) {
	two := []*sliceBuilder{slice("1", ring(2)...)}
	const missing = "device.attributes['mla.example.com'].color == 'red'"
	for name, test := range map[string]struct {
		class   *resourceapi.DeviceClass
		claim   *claimBuilder
		message string
	}{
		"request does not compile": {claim: claim("c").want("mla", 1, "true", "devicex"), message: "claim default/c: selector #1: CEL compile error: "},
		"class does not compile":   {class: classOf("broken", "1"), claim: claim("c").want("mla", 1).class("broken"), message: "class broken: selector #0: CEL compile error: "},
		"request fails":            {claim: claim("c").want("mla", 1, missing), message: "claim default/c: selector #0 on device mla.example.com/pool-1/mla-0: CEL runtime error: no such key: color. consider using CEL optional chaining"},
		"class fails":              {class: classOf("broken", missing), claim: claim("c").want("mla", 1).class("broken"), message: "class broken: selector #0 on device mla.example.com/pool-1/mla-0: CEL runtime error: "},
		"class without CEL": {
			class:   &resourceapi.DeviceClass{ObjectMeta: classOf("future").ObjectMeta, Spec: resourceapi.DeviceClassSpec{Selectors: make([]resourceapi.DeviceSelector, 1)}},
			claim:   claim("c").want("mla", 1).class("future"),
			message: "class future: selector #0: CEL expression empty (unsupported selector type?)",
		},
		"all":               {claim: claim("c").wantAll("mla", missing), message: "selector #0 on device mla.example.com/pool-1/mla-0: CEL runtime error: "},
		"all, second":       {claim: claim("c").want("one", 1).wantAll("mla", missing), message: "selector #0 on device mla.example.com/pool-1/mla-0: CEL runtime error: "},
		"on a later device": {claim: claim("c").want("mla", 1, "1 / ("+index+" - 1) > 0"), message: "selector #0 on device mla.example.com/pool-1/mla-1: CEL runtime error: division by zero"},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{slices: two, claims: []*claimBuilder{test.claim}}
			if test.class != nil {
				s.classes = []*resourceapi.DeviceClass{test.class}
			}
			s.requireError(t, test.message)
		})
	}
}

// A selector fails the allocation only if the search reaches the device.
func TestSelectorsAreLazy(t *testing.T) {
	slices := []*sliceBuilder{slice("1", newDevice("a", attrs{"index": 0}), newDevice("b", attrs{"index": 1}), newDevice("broken", nil))}
	const selector = index + " >= 0"
	t.Run("not reached", func(t *testing.T) {
		scenario{slices: slices, claims: []*claimBuilder{claim("c").want("mla", 2, selector)}}.requireDevices(t, "mla=a", "mla=b")
	})
	t.Run("reached", func(t *testing.T) {
		scenario{slices: slices, claims: []*claimBuilder{claim("c").want("mla", 3, selector)}}.requireError(t, "device mla.example.com/pool-1/broken")
	})
	t.Run("in use before", func(t *testing.T) {
		slices := []*sliceBuilder{slice("1", newDevice("broken", nil), newDevice("b", attrs{"index": 1}))}
		scenario{slices: slices, inUse: []string{"broken"}, claims: []*claimBuilder{claim("c").want("mla", 1, selector)}}.requireDevices(t, "mla=b")
	})
	t.Run("all looks at devices in use too", func(t *testing.T) {
		slices := []*sliceBuilder{slice("1", newDevice("broken", nil), newDevice("b", attrs{"index": 1}))}
		scenario{slices: slices, inUse: []string{"broken"}, claims: []*claimBuilder{claim("c").wantAll("mla", selector)}}.requireError(t, "device mla.example.com/pool-1/broken")
	})
	t.Run("does not even compile", func(t *testing.T) {
		scenario{claims: []*claimBuilder{claim("c").want("mla", 1, "devicex")}}.requireNone(t)
	})
}

func TestPerDeviceNodeSelection(t *testing.T) {
	slices := []*sliceBuilder{slice("1",
		newDevice("there", attrs{"index": 0}, func(d *resourceapi.Device) { d.NodeName = ptr.To("node-2") }),
		newDevice("slow", attrs{"index": 1}, func(d *resourceapi.Device) { d.NodeSelector = nodesWith("slow") }),
		newDevice("fast", attrs{"index": 2}, func(d *resourceapi.Device) { d.NodeSelector = nodesWith("fast") }),
		newDevice("here", attrs{"index": 3}, func(d *resourceapi.Device) { d.NodeName = ptr.To(nodeName) }),
		newDevice("everywhere", attrs{"index": 4}, func(d *resourceapi.Device) { d.AllNodes = ptr.To(true) }),
	).perDevice()}
	s := scenario{slices: slices, node: newNode(nodeName, "fast"), claims: []*claimBuilder{claim("c").want("mla", 3)}}
	s.requireDevices(t, "mla=fast", "mla=here", "mla=everywhere")

	// The node comes after the selectors, so a device for another node can fail.
	s.claims = []*claimBuilder{claim("c").want("mla", 1, "1 / "+index+" >= 0")}
	s.requireError(t, "device mla.example.com/pool-1/there: CEL runtime error: division by zero")

	// An error of one device's own selector is met when the device is reached.
	s.slices[0].Spec.Devices[3].NodeName = nil
	s.slices[0].Spec.Devices[3].NodeSelector = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchExpressions: []v1.NodeSelectorRequirement{{Key: "x", Operator: "Resembles"}},
	}}}
	s.claims = []*claimBuilder{claim("c").want("mla", 1)}
	s.requireDevices(t, "mla=fast")
	s.claims = []*claimBuilder{claim("c").want("mla", 2)}
	s.requireError(t, "Resembles")
}

// What is known about a device is remembered, for each kind of request on its own.
func TestSelectionIsRemembered(t *testing.T) {
	s := scenario{slices: []*sliceBuilder{slice("1", ring(2)...)}, claims: []*claimBuilder{claim("c").want("a", 1, index+" == 0").want("b", 1).want("c", 2, index+" == 0")}}.search(t)
	a, b := s.requests[0][0][0], s.requests[0][1][0]
	for range 2 {
		first, err := a.isSelected(s.inventory.Candidates[0])
		require.NoError(t, err)
		second, err := a.isSelected(s.inventory.Candidates[1])
		require.NoError(t, err)
		require.Equal(t, []bool{true, false}, []bool{first, second})
	}
	remembered := func(r *request) []selection.Verdict {
		return []selection.Verdict{r.group.selectors.Verdict(0), r.group.selectors.Verdict(1)}
	}
	require.Equal(t, []selection.Verdict{selection.Selected, selection.NotSelected}, remembered(a))
	require.Equal(t, []selection.Verdict{selection.Unknown, selection.Unknown}, remembered(b))
	require.Equal(t, []selection.Verdict{selection.Selected, selection.NotSelected}, remembered(s.requests[0][2][0]))
}

// slow takes long enough for an ended context to be noticed.
const slow = "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, a + b + c >= 0)))"

func TestInterruptedSelector(t *testing.T) {
	s := scenario{slices: []*sliceBuilder{slice("1", ring(1)...)}, claims: []*claimBuilder{claim("c").want("mla", 1, slow)}}.search(t)
	cause := errors.New("moved")
	for _, want := range []error{nil, cause} {
		ctx := cancelledWhenWatched(t, want)
		s.ctx, s.evaluator.Context, s.work.ctx = ctx, ctx, ctx
		_, err := s.requests[0][0][0].isSelected(s.inventory.Candidates[0])
		require.ErrorContains(t, err, "operation interrupted")
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, context.Cause(ctx))
	}
}
