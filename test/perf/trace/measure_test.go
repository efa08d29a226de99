// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	write = flag.String("write", "", "the file that results are written to; what is not measured is kept")
	what  = flag.String("what", "all", "what is measured: replays, times, asked or all of these; or scheduler")
)

// full is what the results are of.
var full = Plan{Nodes: 100, ClaimsADevice: 20, Traces: 3, Loads: []float64{0.7, 0.8, 0.9, 0.95}}

// brief is long enough to measure times.
var brief = Plan{Nodes: 100, ClaimsADevice: 3}

// fewNodes is what is replayed on whole schedulers: an event takes one some 50 ms.
var fewNodes = Plan{Nodes: 16, ClaimsADevice: 6, Traces: 1, Loads: []float64{0.9}}

// TestWriteResults measures and writes, with -write.
func TestWriteResults(t *testing.T) {
	if *write == "" {
		t.Skip("-write says where to")
	}
	kept := &Results{}
	if content, err := os.ReadFile(*write); err == nil {
		require.NoError(t, json.Unmarshal(content, kept))
	}
	measures := func(name string) bool { return *what == "all" && name != "scheduler" || *what == name }
	var err error
	if measures("replays") {
		measured, err := full.Measure(t.Logf)
		require.NoError(t, err)
		measured.Times, measured.Asked, measured.Scheduled = kept.Times, kept.Asked, kept.Scheduled
		kept = measured
	}
	if measures("times") {
		kept.Times, err = brief.MeasureTimes(t.Logf)
		require.NoError(t, err)
	}
	if measures("asked") {
		kept.Asked, err = MeasureAsked(t.Logf)
		require.NoError(t, err)
	}
	if measures("scheduler") {
		kept.Scheduled = nil
		for _, name := range []string{"ring", "cube-mesh"} {
			kept.Scheduled = append(kept.Scheduled, onSchedulers(t, machineNamed(t, name))...)
			keep(t, kept) // it takes long
		}
	}
	keep(t, kept)
}

func keep(t *testing.T, results *Results) {
	t.Helper()
	describe(results)
	content, err := json.MarshalIndent(results, "", " ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(*write, append(content, '\n'), 0o644))
}
