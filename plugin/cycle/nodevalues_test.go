// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cycle

import (
	"cmp"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	fwk "k8s.io/kube-scheduler/framework"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/plugintest"
)

// value returns the value of one preference. claim and preference are indices.
func value(claim, preference int, value int64) allocator.PreferenceValue {
	return allocator.PreferenceValue{Claim: claim, Preference: preference, Value: value}
}

func details(values ...allocator.PreferenceValue) allocator.Details {
	return allocator.Details{Outcome: allocator.PreferenceBest, Preferences: values}
}

// named returns nodes with the given names.
func named(names ...string) []fwk.NodeInfo {
	infos := make([]fwk.NodeInfo, 0, len(names))
	for _, name := range names {
		infos = append(infos, plugintest.Node(name))
	}
	return infos
}

func TestScoresOfNodes(t *testing.T) {
	for name, test := range map[string]struct {
		values map[string]allocator.Details
		want   map[string]int64
	}{
		"nothing": {},
		"alike":   {values: map[string]allocator.Details{"a": details(value(0, 0, 7)), "b": details(value(0, 0, 7)), "c": details(value(0, 0, 7))}},
		"three": {
			values: map[string]allocator.Details{"a": details(value(0, 0, -5)), "b": details(value(0, 0, 1000)), "c": details(value(0, 0, -4))},
			want:   map[string]int64{"a": 0, "b": 100, "c": 50},
		},
		"by rank, not by how much": {
			values: map[string]allocator.Details{"a": details(value(0, 0, math.MinInt64)), "b": details(value(0, 0, math.MaxInt64)), "c": details(value(0, 0, math.MaxInt64))},
			want:   map[string]int64{"a": 0, "b": 100, "c": 100},
		},
		"the second decides among equal ones": {
			values: map[string]allocator.Details{
				"a": details(value(0, 0, 2), value(1, 0, 1)), "b": details(value(0, 0, 1), value(1, 0, 9)), "c": details(value(0, 0, 2), value(1, 0, 2)),
			},
			want: map[string]int64{"a": 50, "b": 0, "c": 100},
		},
		"none is the worst": {
			values: map[string]allocator.Details{"a": details(value(0, 0, math.MinInt64)), "b": details(value(0, 0, math.MinInt64), value(0, 1, math.MinInt64))},
			want:   map[string]int64{"a": 50, "b": 100, "c": 0},
		},
		"the first is missing": {
			values: map[string]allocator.Details{"a": details(value(0, 1, 9)), "b": details(value(0, 0, 0)), "c": details(value(0, 2, 9))},
			want:   map[string]int64{"a": 50, "b": 100, "c": 0},
		},
		"nodes that don't fit don't count": {
			values: map[string]allocator.Details{"a": details(value(0, 0, 1)), "b": details(value(0, 0, 2)), "c": details(value(0, 0, 2)), "d": details(value(0, 0, 3))},
			want:   map[string]int64{"a": 0, "b": 100, "c": 100},
		},
	} {
		t.Run(name, func(t *testing.T) {
			values := &NodeValues{}
			for node, d := range test.values {
				values.note(t.Context(), node, d)
			}
			require.Equal(t, test.want, values.Scores(named("a", "b", "c")))
		})
	}
}

// TestLastValuesCount checks that the last search on a node replaces the values of earlier searches there, even by no values.
func TestLastValuesCount(t *testing.T) {
	values := &NodeValues{}
	values.note(t.Context(), "a", details(value(0, 0, 5)))
	values.note(t.Context(), "b", details(value(0, 0, 4)))
	values.note(t.Context(), "a", details(value(0, 0, 3)))
	require.Equal(t, map[string]int64{"a": 0, "b": 100}, values.Scores(named("a", "b")))
	values.note(t.Context(), "b", allocator.Details{})
	require.Equal(t, map[string]int64{"a": 100, "b": 0}, values.Scores(named("a", "b")))
	values.note(t.Context(), "a", allocator.Details{})
	require.Nil(t, values.Scores(named("a", "b")))
	require.Empty(t, values.byNode)
}

// TestOrderOfValues compares compareValues with the lexicographic order of vectors. A missing value is the least.
func TestOrderOfValues(t *testing.T) {
	const claims, preferences = 2, 3
	values := rapid.Custom(func(t *rapid.T) [claims * preferences]*int64 {
		var all [claims * preferences]*int64
		for i := range all {
			all[i] = rapid.Ptr(rapid.Int64Range(-1, 1), true).Draw(t, "value")
		}
		return all
	})
	listed := func(all [claims * preferences]*int64) (list []allocator.PreferenceValue) {
		for i, v := range all {
			if v != nil {
				list = append(list, value(i/preferences, i%preferences, *v))
			}
		}
		return list
	}
	less := func(a, b *int64) int {
		switch {
		case a == nil && b == nil:
			return 0
		case a == nil:
			return -1
		case b == nil:
			return 1
		}
		return cmp.Compare(*a, *b)
	}
	cases.Check(t, func(t *rapid.T) {
		a, b := values.Draw(t, "a"), values.Draw(t, "b")
		want := 0
		for i := range a {
			want = cmp.Or(want, less(a[i], b[i]))
		}
		require.Equal(t, want, compareValues(listed(a), listed(b)))
	})
}
