// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTracesPage(t *testing.T) {
	replay := func(policy string, load float64, fours, eights int) Replay {
		return Replay{Machine: "ring", Mix: "few", Load: load, Policy: policy, Stranded: 0.25, Sizes: map[int]*Placing{
			1: {Claims: 100, AtOnce: 100, Placed: 100}, 4: {Claims: 30, AtOnce: fours, Placed: 30, Waited: 70}, 8: {Claims: 10, AtOnce: eights, Placed: 9},
		}}
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

// Without results the plots are empty.
func TestNoTraces(t *testing.T) {
	page, plots := (&Traces{}).Page()
	require.Contains(t, page, "# Claims that come and go")
	requirePlots(t, plots)
}
