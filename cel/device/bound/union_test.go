// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/internal/testing/cases"
)

// railed has a device for each list of rails: nil for none, a single number for a scalar.
func railed(all ...any) []*device.Device {
	result := make([]*device.Device, len(all))
	for i, rails := range all {
		d := &resourceapi.Device{Name: fmt.Sprint(i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"x": {IntValue: new(int64(i % 3))},
		}}
		switch rails := rails.(type) {
		case []int64:
			d.Attributes["rails"] = resourceapi.DeviceAttribute{IntValues: rails}
		case int:
			d.Attributes["rails"] = resourceapi.DeviceAttribute{IntValue: new(int64(rails))}
		}
		result[i] = device.New("d", d)
	}
	return result
}

const rails = "devices.map(d, d.attributes['d'].rails).flatten().distinct().size()"

func TestUnionsRemove(t *testing.T) {
	all := railed([]int64{0, 1}, []int64{0, 1}, []int64{1, 2}, []int64{2, 3}, []int64{0}, 1, []int64{4, 5})
	s := newSound(t, environment(t), rails+" <= 2", 3, all)
	_, propagated := s.check(t, s.bounds(t), s.partial([]int{0}, []int{1, 2, 3, 4, 5, 6}), bound.Quick)
	require.Equal(t, []int{1, 4, 5}, positions(propagated.Domain))
	infeasible, _ := s.check(t, s.bounds(t), s.partial([]int{0, 2}, []int{1, 3}), bound.Quick)
	require.True(t, infeasible)
	s = newSound(t, environment(t), rails+" == 6", 3, all)
	infeasible, _ = s.check(t, s.bounds(t), s.partial([]int{4}, []int{0, 1, 5}), bound.Quick)
	require.True(t, infeasible)
}

func TestUnionsAreSound(t *testing.T) {
	e := environment(t)
	var texts []formula
	for _, text := range []string{
		rails + " <= 2", rails + " == 3", rails + " > 3", "!(" + rails + " <= 3)",
		"devices.filter(d, d.x != 1).map(d, d.attributes['d'].rails).flatten().distinct().size() <= 2",
		rails + " <= devices.size()", rails + " <= 2 || devices.all(d, d.x == 0)", rails + " % 2 == 0",
	} {
		texts = append(texts, compiled(t, e, text))
	}
	infeasible := 0
	cases.CheckN(t, cases.Of(400, 2000), func(rt *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(rt, "devices")
		all := make([]any, n)
		for i := range all {
			switch rapid.IntRange(0, 15).Draw(rt, "kind") {
			case 0: // missing
			case 1, 2:
				all[i] = rapid.IntRange(0, 4).Draw(rt, "rail")
			default:
				all[i] = rapid.SliceOfN(rapid.Int64Range(0, 4), 1, 3).Draw(rt, "rails")
			}
		}
		s := soundOf(rapid.SampledFrom(texts).Draw(rt, "text"), rapid.IntRange(1, min(n, 4)).Draw(rt, "size"), railed(all...))
		bounds := s.bounds(rt)
		for range 4 {
			if is, _ := s.check(rt, bounds, drawPartial(rt, s), bound.Thorough); is {
				infeasible++
			}
		}
	})
	require.Positive(t, infeasible)
}
