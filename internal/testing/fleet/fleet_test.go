// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/testing/fleet"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func TestClustersHaveFiveKilobytes(t *testing.T) {
	for _, i := range []int{0, 1, 999, 9999} {
		data, err := json.Marshal(fleet.Cluster(i, now))
		require.NoError(t, err)
		require.InDelta(t, 5000, len(data), 500)
	}
}

func TestClustersAreTheSameAndDiffer(t *testing.T) {
	require.Equal(t, fleet.Cluster(7, now), fleet.Cluster(7, now))
	require.Less(t, fleet.Cluster(7, now).Name, fleet.Cluster(10, now).Name)
	clouds, versions, regions := map[string]int{}, map[string]int{}, map[string]int{}
	for i := range 12 {
		c := fleet.Cluster(i, now)
		clouds[c.Labels["cloud"]]++
		versions[c.Status.Version.Kubernetes]++
		regions[c.Labels["region"]]++
	}
	require.Len(t, clouds, 3)
	require.Len(t, versions, 3)
	require.Len(t, regions, 4)
}
