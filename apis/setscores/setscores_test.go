// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package setscores_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/apis/setscores"
	"github.com/celset/celset/internal/testing/cases"
)

func TestNamesAreReversible(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		key := setscores.Key{
			Class:      rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?(\.[a-z0-9]{1,9}){0,3}`).Draw(t, "class"),
			Constraint: rapid.StringMatching(`[A-Za-z_][A-Za-z0-9_]{0,31}`).Draw(t, "constraint"),
			Devices:    rapid.IntRange(1, setscores.MaxDevices).Draw(t, "devices"),
			State:      rapid.SampledFrom([]setscores.State{setscores.Now, setscores.Packed, setscores.Idle}).Draw(t, "state"),
		}
		parsed, ok := setscores.Parse(key.String())
		require.True(t, ok, key)
		require.Equal(t, key, parsed)
	})
}

// TestKeysHaveOneName tests that every text is the name of at most one key.
func TestKeysHaveOneName(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a/]{0,4}/?[b/]{0,3}/[-+]?[0-9]{1,3}/(now|idle|packed|Now|)/?`)).Draw(t, "name")
		if key, ok := setscores.Parse(name); ok {
			require.Equal(t, name, key.String())
		}
	})
}

func TestNamesThatAreNone(t *testing.T) {
	for _, name := range []string{
		"", "now", "a/b/now", "a/b/8", "a/b/8/", "a/b/8/soon", "a/b/8/now/", "a/b/c/8/now", "/b/8/now", "a//8/now",
		"a/b/08/now", "a/b/+8/now", "a/b/-8/now", "a/b/0/now", "a/b/33/now", "a/b/99999999999999999999/now", "a/b/ 8/now", "a/b/8.0/now", "a/b/8/NOW",
	} {
		_, ok := setscores.Parse(name)
		require.False(t, ok, name)
	}
	require.EqualValues(t, resourceapi.AllocationResultsMaxSize, setscores.MaxDevices)
}

func TestScaleIsMonotone(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		sets := rapid.IntRange(-10, 1<<60)
		a, b := sets.Draw(t, "a"), sets.Draw(t, "b")
		require.LessOrEqual(t, setscores.Value(min(a, b)), setscores.Value(max(a, b)))
		require.Equal(t, a <= 0, setscores.Value(a) < 0)
		require.LessOrEqual(t, setscores.Value(a), int32(100))
		require.GreaterOrEqual(t, setscores.Value(a), int32(-100))
	})
	for sets, value := range map[int]int32{
		-1: -100, 0: -100, 1: 1, 2: 2, 49: 49, 50: 50, 51: 50, 57: 50, 58: 51, 100: 55, 200: 60, 51_199: 99, 51_200: 100, 1 << 62: 100,
	} {
		require.Equal(t, value, setscores.Value(sets), sets)
	}
}
