// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// small is a cluster for tests.
var small = Plan{Nodes: 8, ClaimsADevice: 8, Traces: 1}

// replayed has what becomes of a small trace by machine and policy: claims for 1, 2, 4 and 8 devices
// that were placed at once, and all that were placed.
var replayed = map[string][5]int{
	"pairs/first fit":                     {247, 39, 35, 7, 382},
	"pairs/today":                         {270, 39, 33, 0, 386},
	"pairs/random":                        {270, 36, 28, 0, 386},
	"pairs/fullest node":                  {270, 44, 36, 7, 391},
	"pairs/KeepWhole":                     {243, 35, 34, 7, 386},
	"pairs/KeepWhole, ties at random":     {253, 31, 36, 7, 381},
	"pairs/pool":                          {178, 27, 39, 8, 392},
	"ring/first fit":                      {240, 32, 37, 7, 388},
	"ring/today":                          {270, 41, 28, 1, 386},
	"ring/random":                         {270, 38, 26, 0, 389},
	"ring/fullest node":                   {269, 41, 47, 7, 394},
	"ring/KeepWhole":                      {229, 33, 35, 8, 391},
	"ring/KeepWhole, ties at random":      {270, 44, 41, 7, 391},
	"ring/pool":                           {178, 27, 39, 8, 392},
	"mesh/first fit":                      {557, 79, 89, 34, 809},
	"mesh/today":                          {561, 87, 67, 5, 799},
	"mesh/random":                         {555, 84, 53, 1, 795},
	"mesh/fullest node":                   {555, 84, 77, 22, 805},
	"mesh/KeepWhole":                      {545, 80, 87, 35, 802},
	"mesh/KeepWhole, ties at random":      {552, 79, 95, 34, 806},
	"mesh/pool":                           {521, 76, 102, 39, 806},
	"cube-mesh/first fit":                 {247, 34, 35, 7, 387},
	"cube-mesh/today":                     {270, 45, 33, 0, 384},
	"cube-mesh/random":                    {270, 45, 22, 0, 381},
	"cube-mesh/fullest node":              {247, 40, 36, 7, 382},
	"cube-mesh/best effort":               {247, 34, 35, 7, 387},
	"cube-mesh/links":                     {245, 32, 34, 7, 386},
	"cube-mesh/KeepWhole":                 {246, 38, 37, 7, 383},
	"cube-mesh/KeepWhole, ties at random": {246, 41, 36, 7, 380},
	"cube-mesh/links, KeepWhole":          {270, 44, 38, 6, 391},
	"cube-mesh/pool":                      {178, 27, 39, 8, 392},
	"gpus/first fit":                      {232, 28, 39, 7, 390},
	"gpus/today":                          {270, 41, 39, 0, 393},
	"gpus/random":                         {232, 29, 32, 0, 384},
	"gpus/fullest node":                   {265, 41, 52, 7, 394},
	"gpus/best effort":                    {232, 28, 39, 7, 390},
	"gpus/links":                          {254, 38, 35, 7, 387},
	"gpus/KeepWhole":                      {242, 37, 39, 7, 387},
	"gpus/KeepWhole, ties at random":      {240, 35, 38, 7, 385},
	"gpus/links, KeepWhole":               {269, 40, 47, 6, 395},
	"gpus/pool":                           {178, 27, 39, 8, 392},
}

func TestReplay(t *testing.T) {
	for _, m := range Machines() {
		for _, name := range policiesOn(&m) {
			row, err := small.Replay(small.choosing(&m), few, 0.9, name)
			require.NoError(t, err)
			var got [5]int
			for i, size := range []int{1, 2, 4, 8} {
				got[i] = row.Sizes[size].AtOnce
				got[4] += row.Sizes[size].Placed
			}
			require.Equal(t, replayed[m.Name+"/"+name], got, "%s/%s", m.Name, name)
		}
	}
}

// Asking once is as good as asking each time about each node.
func TestDirect(t *testing.T) {
	for _, m := range Machines() {
		for _, name := range policiesOn(&m) {
			trace := NewTrace(few, 80, 3*m.all().len(), 0.9, 1)
			var outcomes [2]Outcome
			for i := range outcomes {
				c, err := choosing{machine: &m, nodes: 3, direct: i == 1}.cluster(name, rand.New(rand.NewPCG(1, 1)))
				require.NoError(t, err)
				outcomes[i], err = run(c, &trace)
				require.NoError(t, err)
			}
			require.Equal(t, outcomes[0], outcomes[1], "%s, %s", m.Name, name)
		}
	}
}

// On each node the preference chooses links that are worth no less than what best effort chooses, and
// more on some.
func TestAsk(t *testing.T) {
	gpus, mesh := machineNamed(t, "gpus"), linkedMesh()
	for _, of := range []struct {
		machine *Machine
		idle    int
	}{{gpus, 8}, {gpus, 7}, {gpus, 6}, {gpus, 5}, {gpus, 4}, {&mesh, 10}} {
		for _, size := range []int{2, 4} {
			a, err := Ask(of.machine, of.idle, size, 70)
			require.NoError(t, err)
			require.Positive(t, a.Asks)
			require.GreaterOrEqual(t, a.LinksScore, a.BestEffortScore, "%+v", a)
			if of.machine == gpus && of.idle == 6 && size == 2 {
				require.Greater(t, a.LinksScore, a.BestEffortScore)
			}
		}
	}
}

// What is measured is all that a policy was asked.
func TestTime(t *testing.T) {
	m := machineNamed(t, "cube-mesh")
	for _, name := range []string{FirstFit, BestEffort, KeepWhole} {
		timing, err := Plan{Nodes: 4, ClaimsADevice: 2}.Time(m, few, 0.9, name)
		require.NoError(t, err)
		require.Positive(t, timing.Node.P50, name)
		require.Positive(t, timing.Decision.P50, name)
	}
}
