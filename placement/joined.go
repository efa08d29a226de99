// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

// Which set a cluster is in is the same question for all Placements that may choose from the same
// sets, and there is one answer for them: when a cluster changes, one of them finds it, and the
// others look at no cluster.

// mostJoints is of how many combinations of sets that is remembered. Each takes 40 bytes a cluster, and what
// its columns take.
const mostJoints = 16

// joints are those of a Scheduler, the last used one first.
type joints struct {
	mutex sync.Mutex
	known []*joint
}

// of returns the one for some sets.
func (j *joints) of(eligible []*clusterv1beta2.ManagedClusterSet) *joint {
	sets := make([]identity, len(eligible))
	for i, set := range eligible {
		sets[i] = identity{set.Name, set.UID}
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	at := slices.IndexFunc(j.known, func(k *joint) bool { return slices.Equal(k.of, sets) })
	found := &joint{of: sets}
	switch {
	case at >= 0:
		found = j.known[at]
		j.known = slices.Delete(j.known, at, at+1)
	case len(j.known) == mostJoints:
		j.known = j.known[:mostJoints-1]
	}
	j.known = slices.Insert(j.known, 0, found)
	return found
}

// newJoint knows nothing of the sets, and nobody else will see it.
func newJoint([]*clusterv1beta2.ManagedClusterSet) *joint { return &joint{} }

// identity tells objects apart, whatever their version.
type identity struct {
	name string
	uid  types.UID
}

// joint is what is known of some sets. They may be of several versions.
type joint struct {
	of    []identity
	mutex sync.Mutex
	joined
	// columns are what was read of the clusters that are in the sets.
	columns map[topologyKey]*column
}

// available adds the clusters of the sets to a result. Nobody modifies them.
func (j *joint) available(to *Availability, clusters []*clusterv1.ManagedCluster, eligible []*clusterv1beta2.ManagedClusterSet, members membership) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.join(clusters, eligible, members) || j.inSets == nil {
		j.choose(len(eligible))
	}
	to.Clusters, to.sets, to.fleeting, to.joint = j.inSets, j.setsOf, j.fleeting, j
	j.forgetFleeting()
}

// joined are the sets that the clusters were last found to be in.
type joined struct {
	eligible []version
	// clusters are sorted by name; sets has for each of them the index of the first
	// eligible set that it is in, unknown if that must be found anew.
	clusters []*clusterv1.ManagedCluster
	sets     []int
	// inSets are those that are in any set, setsOf has the sets of these.
	inSets []*clusterv1.ManagedCluster
	setsOf []int
	// fleeting tells that some of the clusters have no version.
	fleeting bool
}

// unknown is the set of a cluster that is not remembered.
const unknown = -1

// join finds the sets of those clusters that are not known, and tells whether there are any or
// others are gone. A cluster that is the same object as before, in the same place, is in the same
// set. One that is being deleted is in none.
func (j *joined) join(clusters []*clusterv1.ManagedCluster, eligible []*clusterv1beta2.ManagedClusterSet, members membership) (changed bool) {
	if !j.inPlace(clusters) {
		j.clusters, j.sets = slices.Clone(byName(clusters)), nil
	}
	if versions := versionsOf(eligible); j.sets == nil || !slices.Equal(versions, j.eligible) || slices.ContainsFunc(versions, func(v version) bool { return !v.rememberable() }) {
		j.eligible, j.sets = versions, slices.Repeat([]int{unknown}, len(j.clusters))
		changed = true
	}
	for i, set := range j.sets {
		if set != unknown {
			continue
		}
		changed = true
		if j.clusters[i].DeletionTimestamp.IsZero() {
			j.sets[i] = members.find(j.clusters[i])
		} else {
			j.sets[i] = len(eligible)
		}
		j.fleeting = j.fleeting || j.clusters[i].ResourceVersion == ""
	}
	return changed
}

// choose lists the clusters that are in one of so many sets.
func (j *joined) choose(eligible int) {
	n := 0
	for _, set := range j.sets {
		if set < eligible {
			n++
		}
	}
	j.inSets, j.setsOf = make([]*clusterv1.ManagedCluster, 0, n), make([]int, 0, n)
	for i, set := range j.sets {
		if set < eligible {
			j.inSets, j.setsOf = append(j.inSets, j.clusters[i]), append(j.setsOf, set)
		}
	}
}

// inPlace takes over clusters if they have the names of the former ones, and tells
// whether they do.
func (j *joined) inPlace(clusters []*clusterv1.ManagedCluster) bool {
	if j.sets == nil || len(clusters) != len(j.clusters) {
		return false
	}
	for i, c := range clusters {
		if former := j.clusters[i]; c != former || j.sets[i] == unknown {
			if c == nil || c.Name != former.Name {
				return false
			}
			j.clusters[i], j.sets[i] = c, unknown
		}
	}
	return true
}

// forgetFleeting forgets what was found of objects that may be changed without being
// replaced.
func (j *joined) forgetFleeting() {
	if j.fleeting {
		*j = joined{}
	}
}

func versionsOf(sets []*clusterv1beta2.ManagedClusterSet) []version {
	result := make([]version, len(sets))
	for i, set := range sets {
		result[i] = version{set.UID, set.ResourceVersion}
	}
	return result
}
