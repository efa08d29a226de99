// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/cel/cluster"
)

// A topology is read from every cluster, in objects that are all over the memory, and many Placements spread over the
// same one. So it is read once for all that may choose from the same clusters, and then from clusters that have
// changed.

// mostColumns is of how many topologies that is kept for the clusters of some sets. Each takes 24 bytes a cluster.
const mostColumns = 8

// topologyKey names a topology: a label, or a claim.
type topologyKey struct {
	key    string
	claims bool
}

// column has the value of a topology for each of some clusters. It is not modified.
type column struct {
	clusters []*clusterv1.ManagedCluster
	values   []topologyValue
}

// topologyValue is absent where a cluster is in no topology.
type topologyValue struct {
	value   string
	present bool
}

// of reads a topology.
func (k topologyKey) of(c *clusterv1.ManagedCluster) topologyValue {
	of, value := cluster.New(c), topologyValue{}
	if k.claims {
		value.value, value.present = of.Claims().Lookup(k.key)
	} else {
		value.value, value.present = of.Labels().Lookup(k.key)
	}
	return value
}

// read makes the column of clusters, with what was read of those that were in the same place before.
func (c *column) read(key topologyKey, clusters []*clusterv1.ManagedCluster) *column {
	next := &column{clusters, make([]topologyValue, len(clusters))}
	for i, of := range clusters {
		if c != nil && i < len(c.clusters) && c.clusters[i] == of && of.ResourceVersion != "" {
			next.values[i] = c.values[i]
			continue
		}
		next.values[i] = key.of(of)
	}
	return next
}

// isOf tells whether the column is of just these clusters. Those that may be changed without being replaced are in
// a list of their own each time.
func (c *column) isOf(clusters []*clusterv1.ManagedCluster) bool {
	return c != nil && len(c.clusters) == len(clusters) && (len(clusters) == 0 || &c.clusters[0] == &clusters[0])
}

// column is that of clusters that [joint.available] has returned.
func (j *joint) column(key topologyKey, clusters []*clusterv1.ManagedCluster) *column {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	known := j.columns[key]
	if known.isOf(clusters) {
		return known
	}
	next := known.read(key, clusters)
	if known == nil && len(j.columns) >= mostColumns || j.columns == nil {
		j.columns = map[topologyKey]*column{}
	}
	j.columns[key] = next
	return next
}
