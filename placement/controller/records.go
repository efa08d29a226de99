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

// record holds the state of a Placement between decisions. A change replaces the record as a whole.
type record struct {
	uid types.UID
	pace
	// reads has the scores that the last decision read. A change of such a score queues the Placement.
	reads cluster.ScoreNames
	// namesSets is true if the Placement must be queued after a change of any binding in its namespace.
	namesSets bool
	// version is the resource version of the Placement after this controller last wrote its status.
	version string
	// warnings are the warnings of the last result. An event was recorded for each.
	warnings []placement.Warning
	// listed is true if the ledger has all PlacementDecisions of the Placement. It is set when they are listed, and reset when a
	// write fails.
	listed bool
	// published maps the names of the Placement's objects of SIG Multicluster to the versions that last matched the decision.
	published map[string]string
}

// records holds a record for each Placement that this controller decides.
type records struct {
	timeouts Timeouts
	mutex    sync.RWMutex
	of       map[types.NamespacedName]record
}

func newRecords(timeouts Timeouts) *records {
	return &records{timeouts: timeouts, of: map[types.NamespacedName]record{}}
}

// named returns the record for a name. The Placement that now has the name may have another UID.
func (r *records) named(key types.NamespacedName) record {
	r.mutex.RLock()
	defer r.mutex.RUnlock()
	return r.of[key]
}

// get returns the record of a Placement.
func (r *records) get(object client.Object) record {
	return r.named(client.ObjectKeyFromObject(object)).about(object)
}

// about returns the record for this object, or a new record if the UID differs. If the generation differs, the pace is reset,
// so that a corrected expression ends the delay after overruns. slow is kept in both cases, because a worker of the slow queue
// may be deciding the Placement.
func (r record) about(object client.Object) record {
	if r.uid != object.GetUID() {
		return record{uid: object.GetUID(), pace: pace{generation: object.GetGeneration(), slow: r.slow}}
	}
	if r.generation != object.GetGeneration() {
		r.pace = pace{generation: object.GetGeneration(), slow: r.slow}
	}
	return r
}

// change modifies the record of a Placement.
func (r *records) change(object client.Object, to func(*record)) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	key := client.ObjectKeyFromObject(object)
	known := r.of[key].about(object)
	to(&known)
	r.of[key] = known
}

// read stores which scores a result depends on, and whether it depends on all bindings. It reports whether this differs from
// the former result. In that case events may have been missed, and the Placement must be decided once more.
func (r *records) read(object client.Object, reads cluster.ScoreNames, namesSets bool) (changed bool) {
	r.change(object, func(known *record) {
		changed = known.reads.Computed != reads.Computed || !known.reads.Names.Equal(reads.Names) || known.namesSets != namesSets
		known.reads, known.namesSets = reads, namesSets
	})
	return changed
}

// warn stores the warnings about a Placement. It returns the warnings that the last result did not have.
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

// behind reports whether object is older than the status that this controller last wrote.
func (r *records) behind(object client.Object) bool {
	return older(object.GetResourceVersion(), r.get(object).version)
}

// isOwn reports whether an object is the version that this controller last wrote.
func (r *records) isOwn(object client.Object) bool {
	version := r.get(object).version
	return version != "" && version == object.GetResourceVersion()
}

// forget removes the record for a name.
func (r *records) forget(key types.NamespacedName) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.of, key)
}
