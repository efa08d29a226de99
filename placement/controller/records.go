// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement"
)

// record is what is known of a Placement since it was last decided. It is replaced, not modified.
type record struct {
	uid types.UID
	pace
	// reads are the scores whose changes queue it.
	reads cluster.ScoreNames
	// namesSets is whether any binding in its namespace queues it.
	namesSets bool
	// version is that of the Placement after its status was last written.
	version string
	// warnings had an event already.
	warnings []placement.Warning
	// listed is whether the ledger has all of its PlacementDecisions: they were listed
	// once, and no write has failed since.
	listed bool
	// published are the versions of its PlacementDecisions of SIG Multicluster, by name, when they were last what
	// the decision says.
	published map[string]string
}

// records are those of all Placements that are decided here.
type records struct {
	timeouts Timeouts
	mutex    sync.RWMutex
	of       map[types.NamespacedName]record
}

func newRecords(timeouts Timeouts) *records {
	return &records{timeouts: timeouts, of: map[types.NamespacedName]record{}}
}

// named is the record of the Placement of a name, whichever it is.
func (r *records) named(key types.NamespacedName) record {
	r.mutex.RLock()
	defer r.mutex.RUnlock()
	return r.of[key]
}

// get is the record of a Placement.
func (r *records) get(object client.Object) record {
	return r.named(client.ObjectKeyFromObject(object)).about(object)
}

// about is the record if it is that of this object, else a new one. What was found of an earlier Placement of the same
// name, or how long an earlier generation took, holds only as far as the queue is concerned: a worker of that may have it,
// and to mend an expression ends the wait.
func (r record) about(object client.Object) record {
	if r.uid != object.GetUID() {
		return record{uid: object.GetUID(), pace: pace{generation: object.GetGeneration(), slow: r.slow}}
	}
	if r.generation != object.GetGeneration() {
		r.pace = pace{generation: object.GetGeneration(), slow: r.slow}
	}
	return r
}

// change changes the record of a Placement.
func (r *records) change(object client.Object, to func(*record)) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	key := client.ObjectKeyFromObject(object)
	known := r.of[key].about(object)
	to(&known)
	r.of[key] = known
}

// read notes what scores and bindings a result depends on, and reports whether that has changed. Then changes of them may
// have been missed, and the Placement has to be decided once more.
func (r *records) read(object client.Object, reads cluster.ScoreNames, namesSets bool) (changed bool) {
	r.change(object, func(known *record) {
		changed = known.reads.Computed != reads.Computed || !known.reads.Names.Equal(reads.Names) || known.namesSets != namesSets
		known.reads, known.namesSets = reads, namesSets
	})
	return changed
}

// warn notes the warnings about a Placement and returns the new ones.
func (r *records) warn(object *clusterv1beta1.Placement, warnings []placement.Warning) (added []placement.Warning) {
	r.change(object, func(known *record) {
		for _, warning := range warnings {
			if !slices.Contains(known.warnings, warning) {
				added = append(added, warning)
			}
		}
		known.warnings = warnings
	})
	return added
}

// behind reports whether an object is older than the status that was last written.
func (r *records) behind(object client.Object) bool {
	return older(object.GetResourceVersion(), r.get(object).version)
}

// isOwn reports whether an object is as its status was last written here.
func (r *records) isOwn(object client.Object) bool {
	version := r.get(object).version
	return version != "" && version == object.GetResourceVersion()
}

// forget drops what is known of the Placement of a name.
func (r *records) forget(key types.NamespacedName) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.of, key)
}
