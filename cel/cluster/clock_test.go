// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/cel/cluster/clock"
	"github.com/celset/celset/internal/testing/cases"
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

// timed draws expressions about the time, and a cluster for them.
type timed struct {
	*rapid.T
	now time.Time
	// known are the times that the expression and the cluster name.
	known []time.Time
	// depth is how much deeper the expression may become.
	depth int
}

func (d *timed) one(of ...string) string { return rapid.SampledFrom(of).Draw(d.T, "of") }

// moments are the days on which zones change their offsets, and the ends of time.
var moments = []time.Time{
	time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC), time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC),
	time.Date(2026, 4, 4, 15, 0, 0, 0, time.UTC), time.Date(2026, 3, 8, 10, 0, 0, 0, time.UTC),
	time.Date(2011, 12, 30, 10, 0, 0, 0, time.UTC), time.Date(1893, 3, 31, 23, 6, 32, 0, time.UTC),
	time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2028, 2, 29, 0, 0, 0, 0, time.UTC),
	time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	time.Date(1734, 4, 20, 0, 0, 0, 0, time.UTC), time.Date(2318, 11, 1, 0, 0, 0, 0, time.UTC),
	time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC),
}

// distance is from a second to a hundred years, at any scale.
func (d *timed) distance() time.Duration {
	scale := rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour, 24 * time.Hour, 30 * 24 * time.Hour, 365 * 24 * time.Hour}).Draw(d.T, "scale")
	result := time.Duration(rapid.Int64Range(-90, 90).Draw(d.T, "n")) * scale
	return result + time.Duration(rapid.SampledFrom([]int64{0, 0, 0, 1, -1, 999_999_999}).Draw(d.T, "ns"))
}

// near is a time that CEL has.
func (d *timed) near(t time.Time) time.Time {
	result := t.Add(d.distance()).UTC()
	first, last := moments[8].Add(clock.Tick), moments[9] // Hub takes its zero for none
	switch {
	case result.Before(first):
		return first
	case result.After(last):
		return last
	}
	return result
}

// text names a time, most often one that is not far.
func (d *timed) text() string {
	result := d.near(d.now)
	if rapid.IntRange(0, 9).Draw(d.T, "far") == 0 {
		result = rapid.SampledFrom(moments).Draw(d.T, "moment")
	}
	d.known = append(d.known, result)
	if rapid.IntRange(0, 4).Draw(d.T, "offset") == 0 && result.Year() > 1 && result.Year() < 9999 {
		result = result.In(time.FixedZone("", 2*60*60))
	}
	return result.Format(time.RFC3339Nano)
}

func (d *timed) zone() string {
	return d.one("", "", `"UTC"`, `"Europe/Berlin"`, `"America/New_York"`, `"Australia/Lord_Howe"`, `"Pacific/Apia"`, `"Asia/Kathmandu"`,
		`"Africa/Casablanca"`, `"America/Scoresbysund"`, `"Antarctica/Troll"`, `"+05:30"`, `"-00:30"`, `"-23:59"`, `"99:00"`, `"No/Where"`, `managedCluster.metadata.annotations.zone`)
}

// deeper draws one that is made of others, or a leaf.
func (d *timed) deeper(leaves, others []func() string) string {
	d.depth--
	defer func() { d.depth++ }()
	choice := leaves
	if d.depth > 0 {
		choice = slices.Concat(leaves, others)
	}
	return rapid.SampledFrom(choice).Draw(d.T, "kind")()
}

func (d *timed) timestamp() string {
	return d.deeper([]func() string{
		func() string { return "now()" },
		func() string { return "now()" },
		func() string { return fmt.Sprintf("timestamp(%q)", d.text()) },
		func() string {
			return "timestamp(managedCluster.metadata.annotations." + d.one("a", "b", "missing") + ")"
		},
		func() string { return "timestamp(managedCluster.metadata.creationTimestamp)" },
	}, []func() string{
		func() string { return d.timestamp() + d.one(" + ", " - ") + d.duration() },
		func() string { return "(" + d.duration() + " + " + d.timestamp() + ")" },
		func() string { return "(" + d.boolean() + " ? " + d.timestamp() + " : " + d.timestamp() + ")" },
		func() string { return "timestamp(" + d.timestamp() + ")" },
		func() string { return d.one("dyn", "timestamp") + "(" + d.timestamp() + ")" },
		func() string { return "[" + d.timestamp() + ", " + d.timestamp() + "][" + d.one("0", "1", "2") + "]" },
		func() string { return "{'k': " + d.timestamp() + "}.k" },
		func() string {
			return "optional." + d.one("of", "ofNonZeroValue") + "(" + d.timestamp() + ").or(optional.of(" + d.timestamp() + ")).value()"
		},
		func() string {
			return "managedCluster.metadata.?nothing.optMap(x, timestamp(x)).orValue(" + d.timestamp() + ")"
		},
		func() string { return "cel.bind(x, " + d.timestamp() + ", x + " + d.duration() + ")" },
		func() string {
			return "[" + d.timestamp() + ", " + d.timestamp() + "]." + d.one("max", "min", "first") + "()"
		},
	})
}

func (d *timed) duration() string {
	return d.deeper([]func() string{
		func() string { return fmt.Sprintf("duration(%q)", d.distance()) },
		func() string {
			return fmt.Sprintf("duration('%dh')", rapid.Int64Range(-2562047, 2562047).Draw(d.T, "hours"))
		},
		func() string { return "(now() - " + fmt.Sprintf("timestamp(%q)", d.text()) + ")" },
	}, []func() string{
		func() string { return "(" + d.timestamp() + " - " + d.timestamp() + ")" },
		func() string { return "(" + d.timestamp() + " - " + d.timestamp() + ")" },
		func() string { return "(" + d.duration() + d.one(" + ", " - ") + d.duration() + ")" },
		func() string { return "(-dyn(" + d.duration() + "))" },
		func() string { return "duration(" + d.duration() + ")" },
		func() string { return "(" + d.boolean() + " ? " + d.duration() + " : " + d.duration() + ")" },
	})
}

func (d *timed) number() string {
	return d.deeper([]func() string{
		func() string { return fmt.Sprint(rapid.IntRange(-1, 60).Draw(d.T, "number")) },
		func() string {
			return "now()." + d.one("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getHours", "getMinutes", "getSeconds", "getMilliseconds") + "(" + d.zone() + ")"
		},
	}, []func() string{
		func() string {
			return d.timestamp() + "." + d.one("getFullYear", "getMonth", "getDate", "getDayOfWeek", "getDayOfYear", "getHours", "getMinutes", "getSeconds", "getMilliseconds") + "(" + d.zone() + ")"
		},
		func() string {
			return d.duration() + "." + d.one("getHours", "getMinutes", "getSeconds", "getMilliseconds") + "()"
		},
		func() string { return "int(" + d.timestamp() + ") % 100" },
		func() string { return d.number() + d.one(" + ", " - ", " % ", " / ") + d.number() },
		func() string { return "size(string(" + d.timestamp() + "))" },
		func() string {
			return "[" + d.timestamp() + ", " + d.timestamp() + "].filter(x, x < " + d.timestamp() + ").size()"
		},
	})
}

func (d *timed) boolean() string {
	compare := func() string { return d.one(" < ", " <= ", " > ", " >= ", " == ", " != ") }
	return d.deeper([]func() string{
		func() string { return d.timestamp() + compare() + d.timestamp() },
		func() string { return d.timestamp() + compare() + d.timestamp() },
		func() string { return d.duration() + compare() + d.duration() },
		func() string { return d.number() + compare() + d.number() },
		func() string { return "now().getDayOfWeek(" + d.zone() + ") in [0, 6]" },
	}, []func() string{
		func() string { return "(" + d.boolean() + d.one(" && ", " || ") + d.boolean() + ")" },
		func() string { return "(" + d.boolean() + d.one(" && ", " || ") + d.boolean() + ")" },
		func() string { return "!(" + d.boolean() + ")" },
		func() string { return "(" + d.boolean() + " ? " + d.boolean() + " : " + d.boolean() + ")" },
		func() string {
			return "[" + d.timestamp() + ", " + d.timestamp() + "]." + d.one("exists", "all", "exists_one") + "(x, x" + compare() + d.timestamp() + ")"
		},
		func() string {
			return "managedCluster.status.clusterClaims.exists(c, c.name == 'window' && timestamp(c.value)" + compare() + d.timestamp() + ")"
		},
		func() string {
			return "cel.bind(x, " + d.timestamp() + ", x" + compare() + d.timestamp() + " && x.getHours() < 12)"
		},
		func() string { return "[" + d.timestamp() + "] == [" + d.timestamp() + "]" },
		func() string { return d.timestamp() + " in [" + d.timestamp() + "]" },
		func() string { return "dyn(" + d.timestamp() + ")" + compare() + "dyn(" + d.duration() + ")" },
		func() string { return "dyn(" + d.timestamp() + ") - dyn(" + d.timestamp() + ") > duration('1h')" },
		func() string {
			return "[" + d.timestamp() + "].map(x, x - " + d.duration() + ").all(x, x > " + d.timestamp() + ")"
		},
		func() string {
			return "{'a': " + d.timestamp() + "}.transformMap(k, v, v).all(k, v, v < " + d.timestamp() + ")"
		},
		func() string { return "string(" + d.timestamp() + ").endsWith('0Z')" },
		func() string { return "size([" + d.timestamp() + "]) == 1" },
	})
}

func (d *timed) cluster() *clusterv1.ManagedCluster {
	object := cluster1()
	object.CreationTimestamp = metav1.NewTime(d.near(d.now).Truncate(time.Second))
	object.Annotations = map[string]string{"a": d.text(), "b": d.text(), "zone": rapid.SampledFrom([]string{"Europe/Paris", "", "x", "+01:00"}).Draw(d.T, "zone")}
	object.Status.ClusterClaims = append(object.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: "window", Value: d.text()})
	return object
}

// within are times in the period of an answer: those at which it is most likely to be another
// one, if the period is too long, and some others.
func (d *timed) within(holds *clock.Period) []time.Time {
	end := d.now.Add(clock.Farthest)
	result := []time.Time{holds.From}
	if !holds.Until.IsZero() {
		end = holds.Until
		result = append(result, end.Add(-time.Nanosecond), end.Add(-clock.Tick))
	}
	for _, known := range d.known {
		result = append(result, known, known.Add(clock.Tick), known.Add(-clock.Tick), known.Add(time.Nanosecond))
	}
	for step := time.Nanosecond; step < end.Sub(d.now) && step > 0; step *= 7 {
		result = append(result, d.now.Add(step))
	}
	for range 5 {
		result = append(result, d.now.Add(time.Duration(rapid.Int64Range(0, int64(end.Sub(d.now))).Draw(d.T, "within"))))
	}
	return slices.DeleteFunc(result, func(t time.Time) bool { return !holds.Has(t) || !t.Before(end) })
}

// Nothing about an answer changes in its period: evaluated afresh at any time in it, the
// expression answers the same.
func TestAnswersHoldInTheirPeriods(t *testing.T) {
	counts := map[string]int{}
	check := func(t *rapid.T) {
		d := &timed{T: t, depth: rapid.IntRange(1, 5).Draw(t, "depth")}
		d.now = rapid.SampledFrom(moments).Draw(t, "now")
		d.now = d.near(d.near(d.now))
		object, text := cluster.New(d.cluster()), d.boolean()
		selector, err := environment.Compile(t.Context(), expressions(text), nil)
		if err != nil {
			counts["does not compile"]++
			return
		}
		match := func(now time.Time) (cluster.Verdict, string) {
			verdict, err := selector.Match(t.Context(), object, cluster.Hub{Now: now})
			return verdict, fmt.Sprintln(verdict.Matches, verdict.Cost, err)
		}
		verdict, want := match(d.now)
		if strings.Contains(want, "internal error") {
			t.Fatal(text, want)
		}
		if verdict.Holds == nil {
			counts["did not read the time"]++
			_, got := match(d.now.Add(time.Duration(rapid.Int64Range(0, int64(clock.Farthest)).Draw(t, "later"))))
			require.Equal(t, want, got, text)
			return
		}
		require.True(t, verdict.Holds.Has(d.now), text)
		for _, now := range d.within(verdict.Holds) {
			counts["evaluations"]++
			if _, got := match(now); got != want {
				t.Fatalf("%s\nat %s: %s\nat %s: %s\n%s until %s", text, d.now, want, now, got, "reported", verdict.Holds.Until)
			}
		}
		switch until := verdict.Holds.Until; {
		case until.IsZero():
			counts["never changes"]++
		case until.Sub(verdict.Holds.From) == clock.Tick:
			counts["may change at the next tick"]++
		default:
			if _, then := match(until); then == want {
				counts["is the same again later"]++
			} else {
				counts["changes later"]++
			}
		}
	}
	cases.Until(t, cases.Of(50, 1000), func() bool {
		return min(counts["changes later"], counts["never changes"], counts["did not read the time"]) > 0
	}, check)
	t.Log(counts)
}
