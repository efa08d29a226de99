// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

func TestSegments(t *testing.T) {
	e, err := device.NewNodeEnvironment(cel.Config{})
	require.NoError(t, err)
	nodes := []*device.Device{
		node(map[string]string{"rack": "r1", "leaf": "a"}, 1), node(map[string]string{"rack": "r2", "leaf": "a"}, 2),
		node(map[string]string{"rack": "r1"}, 2), node(map[string]string{"rack": "r2", "leaf": "b"}, 3),
	}
	for _, c := range []struct {
		expression string
		// sizes and groups have an entry for each call of segments. An entry of groups has one character for each node: "-" if
		// the node is not in the list, otherwise a digit. Nodes with equal keys have the same digit.
		sizes  []int64
		groups []string
	}{
		{"nodes.segments(2, n, n.labels.rack)", []int64{2}, []string{"0101"}},
		{"nodes.segments(8, nodes, nodes.attributes['d'].x)", []int64{8}, []string{"0112"}},
		{"nodes.filter(n, has(n.labels.leaf)).segments(2, m, m.labels.leaf)", []int64{2}, []string{"00-1"}},
		{"nodes.filter(n, has(n.labels.leaf)).filter(n, n.labels.leaf == 'a').segments(2, n, [n.labels.rack, n.labels.leaf])", []int64{2}, []string{"01--"}},
		{"nodes.size() == 4 && (nodes.segments(1, n, n.labels.rack) && nodes.segments(2, n, n.attributes['d'].x / 2))", []int64{1, 2}, []string{"0101", "0111"}},
		{"nodes.segments(2, n, [1, 2].exists(nodes, nodes == n.attributes['d'].x))", []int64{2}, []string{"0001"}},
		{expression: "nodes.segments(2, n, n.labels.rack) || nodes.size() == 3"},
		{expression: "!nodes.segments(2, n, n.labels.rack)"},
		{expression: "nodes.all(m, nodes.segments(2, n, n.labels.rack))"},
		{expression: "nodes.segments(nodes.size(), n, n.labels.rack)"},
		{expression: "nodes.segments(0, n, n.labels.rack)"},
		{expression: "nodes.segments(2, n, nodes.filter(m, m.labels.rack == n.labels.rack).size())"},
		{expression: "nodes.filter(n, nodes.size() > 2).segments(2, n, n.labels.rack)"},
		{expression: "nodes.map(n, n.labels.rack).segments(2, n, n)"},
		{expression: "[1, 2].segments(2, n, n)"},
	} {
		t.Run(c.expression, func(t *testing.T) {
			compiled, err := e.Compile(t.Context(), c.expression)
			require.NoError(t, err)
			var sizes []int64
			var groups []string
			for _, s := range compiled.Segments() {
				sizes = append(sizes, s.Size)
				members, err := s.Members(t.Context(), nodes, cel.NewBudget(1<<20))
				require.NoError(t, err)
				digits, text := map[string]byte{}, ""
				for _, m := range members {
					if !m.InList {
						require.Empty(t, m.Key)
						text += "-"
						continue
					}
					if _, known := digits[m.Key]; !known {
						digits[m.Key] = byte('0' + len(digits))
					}
					text += string(digits[m.Key])
				}
				groups = append(groups, text)
			}
			require.Equal(t, c.sizes, sizes)
			require.Equal(t, c.groups, groups)
		})
	}
}

// TestSegmentsOfMembersFail checks a missing label, a key that can't be compared, and a budget.
func TestSegmentsOfMembersFail(t *testing.T) {
	e, err := device.NewNodeEnvironment(cel.Config{})
	require.NoError(t, err)
	nodes := []*device.Device{node(map[string]string{"rack": "r1"}, 1), node(nil, 2)}
	for expression, want := range map[string]string{
		"nodes.segments(2, n, n.labels.rack)":                                           "no such key: rack",
		"nodes.filter(n, n.labels.rack == 'r1').segments(2, n, 1)":                      "no such key: rack",
		"nodes.segments(2, n, n.labels)":                                                "segments has a key of type map",
		"nodes.segments(2, n, quantity('1'))":                                           "segments has a key of type kubernetes.Quantity: use",
		"nodes.filter(n, dyn(n.attributes['d'].x)).segments(2, n, 1)":                   "filter has a condition of type int",
		"nodes.segments(2, n, lists.range(1000).map(x, x).sum() + n.attributes['d'].x)": "budget",
	} {
		compiled, err := e.Compile(t.Context(), expression)
		require.NoError(t, err, expression)
		calls := compiled.Segments()
		require.Len(t, calls, 1, expression)
		_, err = calls[0].Members(t.Context(), nodes, cel.NewBudget(1000))
		require.ErrorContains(t, err, want, expression)
	}
}
