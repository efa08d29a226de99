// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device"
)

// The third node lacks the labels.
func TestLayout(t *testing.T) {
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	nodes := []nodeset.Node{
		{Name: "a", Labels: map[string]string{"x": "0", "y": "3", "rack": "r1"}}, {Name: "b", Labels: map[string]string{"x": "1", "y": "2", "rack": "r2"}}, {Name: "c"},
	}
	row := v1alpha1.Variable{Name: "row", Expression: "int(node.labels.x)"}
	at, inRacks := [][]int64{{0, 3}, {1, 2}, nil}, []string{"n.labels.rack=r1", "n.labels.rack=r2", ""}
	for _, c := range []struct {
		expression string
		variables  []v1alpha1.Variable
		at         [][]int64
		circles    []int64
		groups     []string
	}{
		{expression: "nodes.box(n, [int(n.labels.x), int(n.labels['y'])], [2, 2])", at: at},
		{expression: "true && nodes.box(n, [n.variables.row, int(n.labels.y)], [2, 2], [0, 2 + 2])", variables: []v1alpha1.Variable{row}, at: at, circles: []int64{0, 4}},
		{expression: "nodes.map(n, n.labels.rack).distinct().size() == 1", groups: inRacks},
		{expression: "nodes.map(n, n.labels.rack).distinct().size() == 1 && nodes.box(n, [int(n.labels.x)], [2])", at: [][]int64{{0}, {1}, nil}, groups: inRacks},
		{expression: "nodes.map(n, n.labels.x != '0', n.labels.rack).distinct().size() == 1 && [1, 2].map(n, n).distinct().size() == 2"},
		{expression: "nodes.all(n, nodes.filter(o, o.labels.x == n.labels.x).box(n, [int(n.labels.x)], [1]))"},
	} {
		t.Run(c.expression, func(t *testing.T) {
			problem, err := nodeset.NewProblem(&nodeset.Group{Constraint: &v1alpha1.NodeSetConstraint{Expression: c.expression, Variables: c.variables}}, 0, 2)
			require.NoError(t, err)
			prepared, err := chooser.Prepare(t.Context(), problem.Claim, nodeset.Classes{}, true)
			require.NoError(t, err)
			require.Len(t, prepared.Expressions(), 1)
			if c.at == nil {
				c.at = make([][]int64, len(nodes))
			}
			if c.groups == nil {
				c.groups = make([]string, len(nodes))
			}
			require.Equal(t, &device.Layout{At: c.at, Circles: c.circles, Groups: c.groups}, nodeset.LayoutOf(t.Context(), prepared, nodes))
		})
	}
}
