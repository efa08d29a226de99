// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// Placements that spread over the same or other topologies of the same clusters are decided as by Schedulers that
// know nothing, while clusters change what they are in, come and go.
func TestTopologiesAreThoseOfTheClusters(t *testing.T) {
	h, s := newHub(), newScheduler(t)
	for i := range 12 {
		h.clusters = append(h.clusters, claiming(managed(fmt.Sprintf("c%02d", i), fmt.Sprintf("n=%d", i%3), "all=1"), fmt.Sprintf("n=%d", i%4)))
	}
	decide := func(about string) {
		t.Helper()
		// More topologies than are kept.
		for i := range 12 {
			for _, kind := range []string{"Label", "Claim"} {
				key := "n"
				if i > 1 {
					key = fmt.Sprint("n", i)
				}
				object := placed(t, spreadOver("numberOfClusters: 7\n", fmt.Sprintf(`{topologyKey: %q, topologyKeyType: %s, whenUnsatisfiable: ScheduleAnyway}`, key, kind)))
				object.UID = types.UID(fmt.Sprint(kind, i))
				got, err := s.Schedule(t.Context(), object, h.snapshot(), now)
				require.NoError(t, err)
				require.Equal(t, outcome(schedule(t, object, h)), outcome(got), "%s: %s %s", about, kind, key)
			}
		}
	}
	decide("at first")
	decide("again")
	h.update(3, func(c *clusterv1.ManagedCluster) { c.Labels["n"] = "7" })
	decide("a label")
	h.update(4, func(c *clusterv1.ManagedCluster) { delete(c.Labels, "n"); c.Status.ClusterClaims = nil })
	decide("in none")
	h.update(5, func(c *clusterv1.ManagedCluster) { c.ResourceVersion = "" })
	decide("no version")
	h.clusters[5].Labels["n"] = "9"
	decide("changed in place, without a version")
	h.clusters = h.clusters[2:]
	decide("two are gone")
	h.clusters = append(h.clusters, managed("z", "n=1"))
	decide("one is new")
}
