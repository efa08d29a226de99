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

// at returns a time of August 1, 2026, a Saturday, in UTC.
func at(clock string) time.Time {
	result, err := time.Parse(time.RFC3339Nano, "2026-08-01T"+clock+"Z")
	if err != nil {
		panic(err)
	}
	return result
}

// TestNowTicks tests that now() is in CEL's range for every hub, even if the hub has no time.
func TestNowTicks(t *testing.T) {
	requireMatch(t, true, `now() > timestamp("2026-08-01T12:00:00Z")`, cluster.New(cluster1()), cluster.Hub{})
	for _, far := range []time.Time{time.Unix(-1<<62, 0), time.Unix(1<<62, 0), time.Date(-300, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		requireMatch(t, true, `now() >= timestamp("0001-01-01T00:00:00Z") && now() <= timestamp("9999-12-31T23:59:59Z") && now().getSeconds() % 10 == 0`,
			cluster.New(cluster1()), cluster.Hub{Now: far})
	}
}

// TestMoment tests that Moment returns multiples of the tick in whole seconds since 1970, within CEL's range.
func TestMoment(t *testing.T) {
	for _, tick := range []time.Duration{time.Second, 7 * time.Second, cluster.DefaultTick, time.Minute} {
		noon := at("12:00:00")
		start := cluster.Moment(noon, tick)
		require.Zero(t, start.Unix()%int64(tick/time.Second))
		require.False(t, start.After(noon))
		require.True(t, start.Add(tick).After(noon))
		require.Equal(t, start, cluster.Moment(start.Add(tick-1).In(time.FixedZone("", 3)), tick))
		require.Equal(t, start.Add(-tick), cluster.Moment(start.Add(-1), tick))
		require.Equal(t, start.Add(tick), cluster.Moment(start.Add(tick), tick))
	}
	require.Equal(t, at("12:00:01"), cluster.Moment(at("12:00:01.9"), time.Millisecond), "at least a second")
	require.Equal(t, time.Date(1969, 12, 31, 23, 59, 50, 0, time.UTC), cluster.Moment(time.Unix(-1, 0), cluster.DefaultTick))
	require.Equal(t, time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), cluster.Moment(time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC), 7*time.Second))
	require.Equal(t, time.Date(9999, 12, 31, 23, 59, 50, 0, time.UTC), cluster.Moment(time.Unix(1<<62, 0), cluster.DefaultTick))
}

// TestFailuresWithNow tests that Timed is set even if the evaluation fails.
func TestFailuresWithNow(t *testing.T) {
	selector := compile(t, expressions(`now() < timestamp("2026-08-01T13:00:00Z")`, `timestamp(managedCluster.metadata.name) < now()`))
	verdict, err := selector.Match(t.Context(), cluster.New(cluster1()), cluster.Hub{Now: now})
	_ = requireError(t, err, cel.ReasonRuntime)
	require.True(t, verdict.Timed)
}

// TestNowIsTheClockOfTheHub tests that now() is the Clock of the hub in whole seconds. A Clock between ticks is not rounded.
func TestNowIsTheClockOfTheHub(t *testing.T) {
	requireMatch(t, true, `now() == timestamp("2026-08-01T13:00:07Z")`, cluster.New(cluster1()), cluster.Hub{Now: now, Clock: at("13:00:07")})
}

func ExampleVerdict_timed() {
	selector, _ := environment.Compile(context.Background(), expressions(`now().getHours("Europe/Berlin") >= 22`), nil)
	verdict, _ := selector.Match(context.Background(), cluster.New(cluster1()), cluster.Hub{Now: now})
	fmt.Println(verdict.Matches, verdict.Timed)
	// Output: false true
}
