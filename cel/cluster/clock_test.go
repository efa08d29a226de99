// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

func TestNow(t *testing.T) {
	object := cluster1()
	object.CreationTimestamp = metav1.NewTime(at("09:30:05"))
	object.Annotations = map[string]string{"from": "2026-08-01T22:00:00Z", "to": "2026-08-02T04:00:00Z"}
	const (
		day  = 24 * time.Hour
		tick = 10 * time.Second
	)
	for _, test := range []struct {
		expression string
		want       bool
		// until is when that may change, after noon; 0 is never.
		until time.Duration
	}{
		// The stories of those who asked for it.
		{`timestamp(managedCluster.metadata.annotations.from) <= now() && now() < timestamp(managedCluster.metadata.annotations.to)`, false, 10 * time.Hour},
		{`now() - timestamp(managedCluster.metadata.creationTimestamp) > duration("24h")`, false, 21*time.Hour + 30*time.Minute + tick},
		{`now() - timestamp(managedCluster.metadata.creationTimestamp) > duration("1h")`, true, 0},
		{`now().getDayOfWeek("Europe/Berlin") in [0, 6]`, true, 10 * time.Hour}, // summer time
		{`now().getDayOfWeek() in [0, 6] && now().getHours() >= 22`, false, time.Hour},
		{`managedCluster.status.clusterClaims.exists(c, c.name == "window" && timestamp(c.value) < now())`, false, 0},
		{`cel.bind(age, now() - timestamp(managedCluster.metadata.creationTimestamp), age > duration("1h") && age < duration("3h"))`, true, 30*time.Minute + tick},
		// Comparisons, also where both are equal.
		{`now() == timestamp("2026-08-01T12:00:00Z")`, true, tick},
		{`now() != timestamp("2026-08-01T12:00:00Z")`, false, tick},
		{`now() >= timestamp("2026-08-01T12:00:00Z")`, true, 0},
		{`now() <= timestamp("2026-08-01T12:00:00Z")`, true, tick},
		{`now() == timestamp("2026-08-01T13:00:00Z")`, false, time.Hour},
		{`now() == timestamp("2026-08-01T13:00:01Z")`, false, 0}, // never, in ticks
		{`now() > timestamp("2026-08-01T13:00:00Z")`, false, time.Hour + tick},
		{`now() >= timestamp("2026-08-01T13:00:00.000000001Z")`, false, time.Hour + tick},
		{`now() < timestamp("2026-08-01T11:00:00Z")`, false, 0},
		{`timestamp("2026-08-01T13:00:00Z") - now() < duration("0s")`, false, time.Hour + tick},
		{`-dyn(now() - timestamp("2026-08-01T13:00:00Z")) <= duration("30m")`, false, 30 * time.Minute},
		{`now() - now() == duration("0s")`, true, 0},
		{`now() + (now() - timestamp("2026-08-01T12:00:00Z")) >= timestamp("2026-08-01T14:00:00Z")`, false, time.Hour},
		{`(managedCluster.spec.hubAcceptsClient ? now() : timestamp("2026-08-01T10:00:00Z")) < timestamp("2026-08-01T12:00:05Z")`, true, tick},
		{`[now(), timestamp("2026-08-01T11:00:00Z")].exists(t, t > timestamp("2026-08-01T12:30:00Z"))`, false, 30*time.Minute + tick},
		{`managedCluster.?nothing.optMap(x, timestamp(x)).orValue(now()) < timestamp("2026-08-01T12:30:00Z")`, true, 30 * time.Minute},
		// Parts.
		{`now().getFullYear() == 2026`, true, 153*day - 12*time.Hour},
		{`now().getMonth("Asia/Kolkata") == 7`, true, 31*day - 12*time.Hour - 5*time.Hour - 30*time.Minute},
		{`now().getDate("+02:00") == 1`, true, 10 * time.Hour},
		{`now().getHours("-03:30") == 8`, true, 30 * time.Minute},
		{`now().getMinutes() == 0`, true, time.Minute},
		{`now().getSeconds() == 0`, true, tick},
		{`now().getMilliseconds() == 0`, true, 0},
		{`now().getFullYear("Europe/Berlin") == 2026`, true, 84*day + 13*time.Hour}, // winter time begins
		{`(now() - timestamp("2026-08-01T10:30:00Z")).getHours() == 1`, true, 30 * time.Minute},
		{`(timestamp("2026-08-01T14:00:00Z") - now()).getHours() == 2`, true, tick},
		{`(timestamp("2026-08-01T10:00:00Z") - now()).getMinutes() == -120`, true, time.Minute},
		{`(now() - timestamp("2026-07-11T00:00:00Z")).getHours() / 24 % 14 == 7`, true, time.Hour},
		// What is not looked at does not matter.
		{`managedCluster.metadata.name == "another" && now() > timestamp("2026-08-01T13:00:00Z")`, false, 0},
		{`managedCluster.metadata.name == "cluster1" || string(now()) == ""`, true, 0},
		// What can't be followed.
		{`string(now()).startsWith("2026-08-01T12:00:00")`, true, tick},
		{`int(now()) % 60 < 30`, true, tick},
		{`now() in [timestamp("2026-08-01T13:00:00Z")]`, false, tick},
		{`[now(), timestamp("2026-08-01T11:00:00Z")].max() == now()`, true, tick},
		{`dyn([now()]) == dyn([timestamp("2026-08-01T13:00:00Z")])`, false, tick},
		// Where times and durations end.
		{`(now() - timestamp("0001-01-01T00:00:00Z")) > duration("1h") || true`, true, 0},
		{`timestamp("9999-12-31T23:59:59Z") + (now() - timestamp("2026-08-01T13:00:00Z")) < now() || true`, true, time.Hour},
	} {
		t.Run(test.expression, func(t *testing.T) {
			selector := compile(t, expressions(test.expression))
			verdict, err := selector.Match(t.Context(), cluster.New(object), cluster.Hub{Now: at("12:00:09.999")})
			require.NoError(t, err)
			require.Equal(t, test.want, verdict.Matches)
			if verdict.Holds == nil {
				require.Zero(t, test.until)
				return
			}
			require.Equal(t, at("12:00:00"), verdict.Holds.From)
			if test.until == 0 {
				require.Zero(t, verdict.Holds.Until)
			} else {
				require.Equal(t, test.until, verdict.Holds.Until.Sub(at("12:00:00")))
			}
		})
	}
}

// The time is that of the hub, in whole ticks, and the same for all expressions on a cluster.
func TestNowTicks(t *testing.T) {
	for _, now := range []string{"12:00:00", "12:00:09.999999999"} {
		requireMatch(t, true, `now() == timestamp("2026-08-01T12:00:00Z")`, cluster.New(cluster1()), cluster.Hub{Now: at(now)})
	}
	requireMatch(t, true, `now() == timestamp("2026-08-01T12:00:10Z")`, cluster.New(cluster1()), cluster.Hub{Now: at("12:00:10")})
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

func TestNowIsAFunctionWithoutArguments(t *testing.T) {
	for text, message := range map[string]string{
		`now > timestamp("2026-08-01T12:00:00Z")`: "undeclared reference to 'now'",
		`now(1) > 1`:   "undeclared reference to 'now'",
		`"a".now()`:    "undeclared reference to 'now'",
		`now() > "a"`:  "found no matching overload for '_>_' applied to '(timestamp, string)'",
		`@now > now()`: "Syntax error",
	} {
		_, err := environment.Compile(t.Context(), expressions(text), nil)
		require.ErrorContains(t, err, message, text)
	}
	// Whoever has a variable of that name keeps it.
	requireMatch(t, true, `[1].all(now, now == 1) && cel.bind(now, now(), now == now())`, cluster.New(cluster1()), cluster.Hub{Now: now})
}

func ExampleVerdict_holds() {
	selector, _ := environment.Compile(context.Background(), expressions(`now().getHours("Europe/Berlin") >= 22`), nil)
	verdict, _ := selector.Match(context.Background(), cluster.New(cluster1()), cluster.Hub{Now: now})
	fmt.Println(verdict.Matches, verdict.Holds.Until)
	// Output: false 2026-08-01 13:00:00 +0000 UTC
}
