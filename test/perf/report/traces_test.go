// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTracesPage(t *testing.T) {
	replay := func(policy string, load float64, fours, eights int) Replay {
		return Replay{Machine: "ring", Mix: "few", Load: load, Policy: policy, Outcome: Outcome{Stranded: 0.25, Sizes: map[int]*Tally{
			1: {Claims: 100, AtOnce: 100, Placed: 100}, 4: {Claims: 30, AtOnce: fours, Placed: 30, Waited: 70}, 8: {Claims: 10, AtOnce: eights, Placed: 9},
		}}}
	}
	traces := &Traces{Replays: []Replay{
		replay(today, 0.7, 16, 4), replay(firstFit, 0.7, 20, 5), replay(keepWhole, 0.7, 25, 5), replay(keepWholeTies, 0.7, 20, 8), replay(poolPolicy, 0.7, 30, 10),
		replay(today, 0.9, 0, 0), replay(keepWhole, 0.9, 10, 0),
	}}
	page, plots := traces.Page()
	require.Contains(t, page, "| a ring of 8 | few | 70 % | 50.0 % | 62.5 % | 75.0 % | 70.0 % | 100.0 % | +50 % | +20 % |\n")
	require.Contains(t, page, "| a ring of 8 | few | 90 % | 0.0 % | 0.0 % | 25.0 % | 0.0 % | 0.0 % | – | – |\n")
	require.Contains(t, page, "| a ring of 8 | 70 % | today | 100.0 % | 0.0 % | 53.3 % | 40.0 % | 139 of 140 | 0.50 | 25.00 % |\n")
	require.Contains(t, page, "| 70 % | 50.0 % | 62.5 % | 75.0 % | 70.0 % | 100.0 % | +50 % | +20 % |\n")
	require.Contains(t, page, "KeepWhole placed +139 before the traces ended, compared with first fit: fewer in 0 of the 2 rows below.\n")
	require.Len(t, plots, 2)
	requirePlots(t, plots)
}

func TestScheduledPart(t *testing.T) {
	outcome := func(fours int) Outcome {
		return Outcome{Stranded: 0.25, Sizes: map[int]*Tally{1: {Claims: 100, AtOnce: 90, Placed: 100, Waited: 65}, 4: {Claims: 30, AtOnce: fours, Placed: 30}}}
	}
	part := (&Traces{Scheduled: []Scheduled{{
		Machine: "ring", Mix: "few", Load: 0.95, Nodes: 16, ClaimsADevice: 3, Traces: 2, Scheduler: "manifests", Policy: today,
		Real: outcome(20), Simulated: outcome(21), Decisions: 130, Late: 2, Others: 1,
	}}}).scheduledPart()
	require.Contains(t, part, "| a ring of 8 | manifests | scheduler | 20 of 30 | 110 of 130 | 130 | 0.50 | 25.00 % |\n|  |  | simulated: today | 21 of 30 |")
	require.Contains(t, part, `16 nodes, 3 claims for each device, the mix "few" at a load of 95 %, seeds: 2.`)
	require.Contains(t, part, "placed 20 of 30 claims for four and eight devices at once, and 0 with")
	require.Contains(t, part, "made 130 decisions. For 129 of them")
	require.Empty(t, (&Traces{}).scheduledPart())
}

// Without results the plots are empty.
func TestNoTraces(t *testing.T) {
	page, plots := (&Traces{}).Page()
	require.Contains(t, page, "# Claims that come and go")
	requirePlots(t, plots)
}

func TestAskedPart(t *testing.T) {
	asked := func(devices, idle int, theirs, notMet, known, further float64) Asked {
		at := func(p50 float64) Quantiles { return Quantiles{P50: p50, P99: 1000} }
		return Asked{
			Machine: "gpus", Devices: devices, Size: 2, Idle: idle, Asks: 10, BestEffortScore: 2400, LinksScore: 2500,
			BestEffort: at(theirs), Allocator: at(10), Links: at(notMet), Known: at(known), Further: at(further), Plain: at(1.5),
		}
	}
	part := (&Traces{Asked: []Asked{asked(8, 4, 1, 100, 30, 2), asked(8, 8, 36, 200, 35, 2), asked(16, 16, 900, 100, 30, 2)}}).askedPart()
	require.Contains(t, part, "| the same GPUs, any will do | 8 of 8 | 2 | 10 | 240 | 250 | 36.0 | 10.0 | 200 | 35.0 | 2.00 | 1.50 |\n")
	require.Contains(t, part, "| 8 devices | 2 | alone | 1.00 to 36.0 | 100 to 200 | 0 | 30.0 to 35.0 | 1 | 2.00 to 2.00 | 1 | 0.50 to 0.50 | 2 |\n")
	require.Contains(t, part, "| 8 devices | 2 | and an allocator | 11.0 to 46.0 | 100 to 200 | 0 | 30.0 to 35.0 | 1 | 2.00 to 2.00 | 2 | 0.50 to 0.50 | 2 |\n")
	require.Contains(t, part, "| 16 devices | 1 | alone | 900 to 900 | 100 to 100 | 1 |")
	require.Empty(t, (&Traces{}).askedPart())
}
