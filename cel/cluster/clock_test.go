// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
)

// at is a time of the first of August 2026, a Saturday, in UTC.
func at(clock string) time.Time {
	result, err := time.Parse(time.RFC3339Nano, "2026-08-01T"+clock+"Z")
	if err != nil {
		panic(err)
	}
	return result
}

// Without a time in the hub there is one all the same, and one that CEL has.
func TestNowTicks(t *testing.T) {
	requireMatch(t, true, `now() > timestamp("2026-08-01T12:00:00Z")`, cluster.New(cluster1()), cluster.Hub{})
	for _, far := range []time.Time{time.Unix(-1<<62, 0), time.Unix(1<<62, 0), time.Date(-300, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		requireMatch(t, true, `now() >= timestamp("0001-01-01T00:00:00Z") && now() <= timestamp("9999-12-31T23:59:59Z") && now().getSeconds() % 10 == 0`,
			cluster.New(cluster1()), cluster.Hub{Now: far})
	}
}

// A failure holds as long as an answer does.
func TestFailuresWithNow(t *testing.T) {
	selector := compile(t, expressions(`now() < timestamp("2026-08-01T13:00:00Z")`, `timestamp(managedCluster.metadata.name) < now()`))
	verdict, err := selector.Match(t.Context(), cluster.New(cluster1()), cluster.Hub{Now: now})
	_ = requireError(t, err, cel.ReasonRuntime)
	require.Equal(t, at("13:00:00"), verdict.Holds.Until)
}

func ExampleVerdict_holds() {
	selector, _ := environment.Compile(context.Background(), expressions(`now().getHours("Europe/Berlin") >= 22`), nil)
	verdict, _ := selector.Match(context.Background(), cluster.New(cluster1()), cluster.Hub{Now: now})
	fmt.Println(verdict.Matches, verdict.Holds.Until)
	// Output: false 2026-08-01 13:00:00 +0000 UTC
}
