// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/testing/cases"
)

// TestScheduler replays a short trace on a whole scheduler: each claim gets the devices that the simulation
// chooses with as much free, and where nodes are taken in order it gets the node, too. What fits is
// placed at once, see [scheduled].
func TestScheduler(t *testing.T) {
	cases.OnlyNightly(t, "has a whole scheduler place in time what the simulation places")
	const nodes, claims, load, seed = 4, 40, 2, 7
	m := machineNamed(t, "ring")
	s := newStage(t, m, nodes)
	trace := NewTrace(few, claims, nodes*m.all().len(), load, seed)
	waited := false
	for i, c := range schedulers {
		start := time.Now()
		outcome, q := s.replay(t, c, &trace, fmt.Sprintf("replay-%d", i))
		t.Logf("%s: %s; %d decisions, %d late, in %v", c.name, total(outcome), q.decisions, q.late, time.Since(start))
		require.Empty(t, q.others, c.name)
		require.Greater(t, q.decisions, claims/2)
		for _, tally := range outcome.Sizes {
			waited = waited || tally.AtOnce < tally.Placed
		}
	}
	require.True(t, waited, "nobody was placed who had to wait: the trace is too easy")
}

// onSchedulers replays all traces with all schedulers, one after the other, and simulates the same.
func onSchedulers(t *testing.T, m *Machine) []Scheduled {
	t.Helper()
	plan, load := fewNodes, fewNodes.Loads[0]
	s := newStage(t, m, plan.Nodes)
	defer s.Stop()
	chooses := plan.choosing(m)
	var rows []Scheduled
	for i, c := range schedulers {
		row := Scheduled{
			Machine: m.Name, Mix: few.Name, Load: load, Nodes: plan.Nodes, ClaimsADevice: plan.ClaimsADevice, Traces: plan.Traces,
			Scheduler: c.name, Policy: c.policy, Real: Outcome{Sizes: map[int]*Tally{}},
		}
		simulated, err := plan.Replay(chooses, few, load, c.policy)
		require.NoError(t, err)
		row.Simulated = simulated.Outcome
		start := time.Now()
		for seed := range uint64(plan.Traces) {
			trace := plan.trace(m, few, load, seed)
			outcome, q := s.replay(t, c, &trace, fmt.Sprintf("replay-%d-%d", i, seed))
			row.Real.Add(outcome, plan.Traces)
			row.Decisions, row.Late, row.Others = row.Decisions+q.decisions, row.Late+q.late, row.Others+len(q.others)
			for _, other := range q.others {
				t.Logf("%s, %s: unlike the simulation %s", m.Name, c.name, other)
			}
		}
		t.Logf("%s, %s: %s; simulated: %s; %d decisions, %d late, %d others, in %v", m.Name, c.name,
			total(row.Real), total(row.Simulated), row.Decisions, row.Late, row.Others, time.Since(start))
		rows = append(rows, row)
	}
	return rows
}
