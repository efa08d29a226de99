// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// small is a cluster for tests.
var small = Plan{Nodes: 8, Claims: 600, Traces: 1}

// TestReplay pins what becomes of a small trace: claims for 1, 2, 4 and 8 devices that were placed at
// once, and all that were placed.
func TestReplay(t *testing.T) {
	for _, m := range Machines() {
		for _, name := range policiesOn(&m) {
			row, err := small.Replay(&m, few, 0.9, name)
			require.NoError(t, err)
			t.Logf("%s/%s: %d %d %d %d %d\n", m.Name, name, row.Sizes[1].AtOnce, row.Sizes[2].AtOnce, row.Sizes[4].AtOnce, row.Sizes[8].AtOnce, row.Sizes[1].Placed+row.Sizes[2].Placed+row.Sizes[4].Placed+row.Sizes[8].Placed)
		}
	}
}

// Asking once is as good as asking each time about each node.
func TestDirect(t *testing.T) {
	for _, m := range Machines() {
		for _, name := range policiesOn(&m) {
			trace := NewTrace(few, 150, 4*m.all().len(), 0.9, 1)
			var outcomes [2]Outcome
			for i := range outcomes {
				c, err := choosing{machine: &m, nodes: 4, direct: i == 1}.cluster(name, rand.New(rand.NewPCG(1, 1)))
				require.NoError(t, err)
				outcomes[i], err = run(c, &trace)
				require.NoError(t, err)
			}
			require.Equal(t, outcomes[0], outcomes[1], "%s, %s", m.Name, name)
		}
	}
}

func TestTime(t *testing.T) {
	m := machineNamed(t, "cube-mesh")
	for _, name := range []string{FirstFit, BestEffort, Links} {
		timing, err := Plan{Nodes: 100, Claims: 300}.Time(m, few, 0.9, name)
		require.NoError(t, err)
		t.Logf("%+v", timing)
	}
}
