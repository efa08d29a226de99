// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var at = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func TestClustersAreTheSameEachTime(t *testing.T) {
	clusters := newClusters(at)
	require.Equal(t, clusters, newClusters(at))
	roles := map[string]int{}
	for _, c := range clusters {
		roles[c.Labels[shopLabel]]++
	}
	require.Equal(t, map[string]int{"": len(clusters) - 2, "primary": 1, "backup": 1}, roles)
}

func TestTablesAreBounded(t *testing.T) {
	clusters := newClusters(at)
	for _, n := range []int{0, maxRows, maxRows + 1, len(clusters)} {
		var out bytes.Buffer
		(&demo{Options: Options{Out: &out}}).table(clusters[:n], cloudColumn, regionColumn)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if n <= maxRows {
			require.Len(t, lines, n+1)
			continue
		}
		require.Len(t, lines, maxRows+2)
		require.Equal(t, fmt.Sprintf("   ... and %d more", n-maxRows), lines[maxRows+1])
	}
}
