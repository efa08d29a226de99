// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement"
)

// record is what is known of a Placement since it was last decided.
type record struct {
	uid types.UID
	// reads are the scores whose changes queue it.
	reads cluster.ScoreNames
	// version is that of the Placement after its status was last written.
	version string
	// warnings had an event already.
	warnings []placement.Warning
	// listed tells that the ledger has all of its PlacementDecisions: they were listed
	// once, and no write has failed since.
	listed bool
	// published are the versions of its PlacementDecisions of SIG Multicluster, by name, when they were last what
	// the decision says.
	published map[string]string
}

// records are those of all Placements that are decided here.
type records struct {
	mutex sync.RWMutex
	of    map[types.NamespacedName]record
}

func newRecords() *records { return &records{of: map[types.NamespacedName]record{}} }

// note sets what scores a Placement reads, and tells whether that has changed. Then
// changes of them may have been missed, and it has to be decided once more.
func (r *records) note(object *clusterv1beta1.Placement, reads cluster.ScoreNames) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	key := client.ObjectKeyFromObject(object)
	known := r.of[key]
	if known.uid != object.UID {
		known = record{uid: object.UID}
	}
	changed := known.reads.Computed != reads.Computed || !known.reads.Names.Equal(reads.Names)
	known.reads = reads
	r.of[key] = known
	return changed
}

// begin notes that something is going to be known of a Placement, so that it is forgotten with it.
func (r *records) begin(object *clusterv1beta1.Placement) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	key := client.ObjectKeyFromObject(object)
	if r.of[key].uid != object.UID {
		r.of[key] = record{uid: object.UID}
	}
}

// reads tells whether a Placement reads a score. One that was never decided is going
// to be, and reads nothing yet.
func (r *records) reads(key types.NamespacedName, score string) bool {
	r.mutex.RLock()
	defer r.mutex.RUnlock()
	return r.of[key].reads.Has(score)
}

// warn notes the warnings about a Placement and returns the new ones.
func (r *records) warn(key types.NamespacedName, warnings []placement.Warning) []placement.Warning {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	known := r.of[key]
	var result []placement.Warning
	for _, warning := range warnings {
		if !slices.Contains(known.warnings, warning) {
			result = append(result, warning)
		}
	}
	known.warnings = warnings
	r.of[key] = known
	return result
}

// behind tells whether an object is older than the status that was last written.
func (r *records) behind(object *clusterv1beta1.Placement) bool {
	r.mutex.RLock()
	defer r.mutex.RUnlock()
	known := r.of[client.ObjectKeyFromObject(object)]
	return known.uid == object.UID && older(object.ResourceVersion, known.version)
}

// wrote notes an object as the API server answered it after its status was written.
func (r *records) wrote(object *clusterv1beta1.Placement) {
	r.change(object, func(known *record) { known.version = object.ResourceVersion })
}

// listed tells whether the ledger has all PlacementDecisions of a Placement.
func (r *records) listed(object *clusterv1beta1.Placement) bool {
	r.mutex.RLock()
	defer r.mutex.RUnlock()
	known := r.of[client.ObjectKeyFromObject(object)]
	return known.uid == object.UID && known.listed
}

// list notes that the PlacementDecisions of a Placement were listed, or have to be.
func (r *records) list(object *clusterv1beta1.Placement, listed bool) {
	r.change(object, func(known *record) { known.listed = listed })
}

// publish notes the versions of PlacementDecisions that say what was decided.
func (r *records) publish(object *clusterv1beta1.Placement, versions map[string]string) {
	r.change(object, func(known *record) { known.published = versions })
}

// change changes what is known of a Placement, if something is.
func (r *records) change(object *clusterv1beta1.Placement, to func(*record)) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	key := client.ObjectKeyFromObject(object)
	if known := r.of[key]; known.uid == object.UID {
		to(&known)
		r.of[key] = known
	}
}

// isPublished tells whether these are the versions that were noted last.
func (r *records) isPublished(object *clusterv1beta1.Placement, versions map[string]string) bool {
	r.mutex.RLock()
	defer r.mutex.RUnlock()
	known := r.of[client.ObjectKeyFromObject(object)]
	return known.uid == object.UID && known.published != nil && maps.Equal(known.published, versions)
}

// uid is that of the Placement that a record is about, "" if there is none.
func (r *records) uid(key types.NamespacedName) types.UID {
	r.mutex.RLock()
	defer r.mutex.RUnlock()
	return r.of[key].uid
}

func (r *records) forget(key types.NamespacedName) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.of, key)
}
