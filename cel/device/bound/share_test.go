// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// TestEqualPartsShareTables checks that CEL evaluates equal parts once, even if the names of variables differ.
func TestEqualPartsShareTables(t *testing.T) {
	e, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	for text, want := range map[string][]int{ // leaves, predicates
		"devices.all(d, d.driver == 'a') && devices.all(o, o.driver == 'a')":                                                       {1, 1},
		"devices.all(d, d.driver == 'a') && devices.all(o, o.driver == 'b')":                                                       {2, 2},
		"devices.all(d, devices.all(o, d.driver == o.driver)) && devices.all(p, devices.all(q, p.driver == q.driver))":             {2, 1},
		"devices.exists(d, devices.exists(o, d.driver.size() < o.driver.size()))":                                                  {2, 1},
		"devices.all(d, [d].exists(d, d.driver == 'a')) && devices.all(o, [o].exists(d, d.driver == 'a'))":                         {1, 1},
		"devices.all(d, {'x': d.driver}.x == 'a') && devices.all(d, {'x': d.driver}.x == 'a')":                                     {2, 2},
		"devices.all(d, ['a', 'b'].exists(i, i == d.driver)) && devices.all(o, ['a', 'c'].exists(i, i == o.driver))":               {2, 2},
		"devices.all(d, ['a', 'b'].exists(i, i == d.driver)) && devices.all(o, ['a', 'b'].all(i, i == o.driver))":                  {2, 2},
		"devices.all(d, devices.all(o, d.driver < o.driver)) && devices.all(o, devices.all(d, d.driver.size() > o.driver.size()))": {4, 2},
	} {
		expression, err := e.Compile(t.Context(), text)
		require.NoError(t, err, text)
		analysis := Analyze(expression, 2)
		require.Equal(t, want, []int{len(analysis.problem.Leaves), len(analysis.problem.Predicates)}, text)
	}
}
