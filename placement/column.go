// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/cel/cluster"
)

// A topology is read from every cluster, in objects that are all over the memory, and many Placements spread over the
// same one. So it is read once for all that may choose from the same clusters, and then from clusters that have
// changed.

// mostColumns is of how many topologies that is kept for the clusters of some sets. Each takes four bytes a cluster, and
// its values.
const mostColumns = 8

// topologyKey names a topology: a label, or a claim.
type topologyKey struct {
	key    string
	claims bool
}

// column has the value of a topology for each of some clusters. It is not modified.
type column struct {
	clusters []*clusterv1.ManagedCluster
	// in has for each cluster the index of its value, absent if it has none. Every value is that of some cluster.
	in     []int32
	values []string
}

// absent is in place of the value of a cluster that is in no topology.
const absent = -1

// of reads a topology.
func (k topologyKey) of(c *clusterv1.ManagedCluster) (value string, present bool) {
	if k.claims {
		return cluster.New(c).Claims().Lookup(k.key)
	}
	return cluster.New(c).Labels().Lookup(k.key)
}

// read makes the column of clusters, with what was read of those that were in the same place before.
func (c *column) read(key topologyKey, clusters []*clusterv1.ManagedCluster) *column {
	next, index := &column{clusters: clusters, in: make([]int32, len(clusters))}, map[string]int32{}
	at := func(value string) int32 {
		i, known := index[value]
		if !known {
			i = int32(len(next.values))
			index[value] = i
			next.values = append(next.values, value)
		}
		return i
	}
	// now is the index of a value that had another one before, unknown until it is met.
	var now []int32
	if c != nil {
		now = slices.Repeat([]int32{unknown}, len(c.values))
	}
	for i, of := range clusters {
		if c == nil || i >= len(c.clusters) || c.clusters[i] != of || of.ResourceVersion == "" {
			next.in[i] = absent
			if value, present := key.of(of); present {
				next.in[i] = at(value)
			}
			continue
		}
		before := c.in[i]
		switch {
		case before == absent:
			next.in[i] = absent
			continue
		case now[before] == unknown:
			now[before] = at(c.values[before])
		}
		next.in[i] = now[before]
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
