// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// The examples of the proposal "Placement extensible scheduling".

const (
	cpuRatio = "cpuratio"
)

// best is the spec of a Placement for the n clusters with the best scores.
func best(n int, resource, name string, weight int) string {
	return fmt.Sprintf(`
numberOfClusters: %d
prioritizerPolicy:
  mode: Exact
  configurations:
  - {scoreCoordinate: {type: AddOn, addOn: {resourceName: %s, scoreName: %s}}, weight: %d}
`, n, resource, name, weight)
}

// fail gives a cluster the taint of one that is not available.
func (s scene) fail(t testing.TB, name string) {
	t.Helper()
	change(t, s, read(t, s, "", name, &clusterv1.ManagedCluster{}), func(c *clusterv1.ManagedCluster) { c.Spec.Taints = unavailable })
}

// mend takes it away.
func (s scene) mend(t testing.TB, name string) {
	t.Helper()
	change(t, s, read(t, s, "", name, &clusterv1.ManagedCluster{}), func(c *clusterv1.ManagedCluster) { c.Spec.Taints = nil })
}

// scores are those in the decisions of a Placement.
func (s scene) scores(t testing.TB, name string) string {
	t.Helper()
	var text string
	for _, decision := range s.decisions(t, name) {
		text += fmt.Sprintf("%s:%d ", decision.ClusterName, decision.Score)
	}
	return text
}
