// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// Decisions are the PlacementDecisions of the hub, counted. They are kept up to
// date object by object, so that Balance need not go through every decision of
// every Placement each time. They are safe for concurrent use.
type Decisions struct {
	mutex sync.RWMutex
	// objects has every object as it was counted.
	objects map[types.NamespacedName]counted
	// placements has, of every Placement with objects, how often it chose each
	// cluster. total is the sum over all. Neither has zeros.
	placements map[types.NamespacedName]*chosen
	total      map[string]int
}

type counted struct {
	placement types.NamespacedName
	decisions []clusterv1beta1.ClusterDecision
}

type chosen struct {
	objects map[string]struct{}
	counts  map[string]int
	// decisions are those of all objects by cluster; nil if they must be collected
	// anew. They are never modified.
	decisions map[string]clusterv1beta1.ClusterDecision
}

// NewDecisions returns what the objects say.
func NewDecisions(objects ...*clusterv1beta1.PlacementDecision) *Decisions {
	d := &Decisions{
		objects:    map[types.NamespacedName]counted{},
		placements: map[types.NamespacedName]*chosen{},
		total:      map[string]int{},
	}
	for _, object := range objects {
		d.Set(object)
	}
	return d
}

// Set adds an object, in place of one with the same namespace and name. The object
// must not be modified later.
func (d *Decisions) Set(object *clusterv1beta1.PlacementDecision) {
	if object == nil {
		return
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	key := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	d.remove(key)
	entry := counted{
		placement: types.NamespacedName{Namespace: object.Namespace, Name: object.Labels[clusterv1beta1.PlacementLabel]},
		decisions: object.Status.Decisions,
	}
	d.objects[key] = entry
	own := d.placements[entry.placement]
	if own == nil {
		own = &chosen{objects: map[string]struct{}{}, counts: map[string]int{}}
		d.placements[entry.placement] = own
	}
	own.objects[object.Name], own.decisions = struct{}{}, nil
	for _, decision := range entry.decisions {
		add(own.counts, decision.ClusterName, 1)
		add(d.total, decision.ClusterName, 1)
	}
}

// Delete removes an object; it need not be there.
func (d *Decisions) Delete(namespace, name string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.remove(types.NamespacedName{Namespace: namespace, Name: name})
}

func (d *Decisions) remove(key types.NamespacedName) {
	entry, found := d.objects[key]
	if !found {
		return
	}
	delete(d.objects, key)
	own := d.placements[entry.placement]
	own.decisions = nil
	for _, decision := range entry.decisions {
		add(own.counts, decision.ClusterName, -1)
		add(d.total, decision.ClusterName, -1)
	}
	if delete(own.objects, key.Name); len(own.objects) == 0 {
		delete(d.placements, entry.placement)
	}
}

func add(counts map[string]int, name string, n int) {
	if counts[name] += n; counts[name] == 0 {
		delete(counts, name)
	}
}

// former returns the decisions of one Placement by the names of clusters. An empty
// name is no decision; of several on one cluster the one in the last object counts.
func (d *Decisions) former(placement types.NamespacedName) map[string]clusterv1beta1.ClusterDecision {
	if d == nil {
		return nil
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	own := d.placements[placement]
	if own == nil {
		return nil
	}
	if own.decisions == nil {
		own.decisions = d.collect(placement.Namespace, own)
	}
	return own.decisions
}

func (d *Decisions) collect(namespace string, own *chosen) map[string]clusterv1beta1.ClusterDecision {
	result := make(map[string]clusterv1beta1.ClusterDecision, len(own.counts))
	for _, name := range slices.Sorted(maps.Keys(own.objects)) {
		for _, decision := range d.objects[types.NamespacedName{Namespace: namespace, Name: name}].decisions {
			if decision.ClusterName != "" {
				result[decision.ClusterName] = decision
			}
		}
	}
	return result
}

// others returns how often other Placements chose the named clusters, and the most
// that they chose any cluster.
func (d *Decisions) others(placement types.NamespacedName, names func(yield func(string) bool)) (counts []int, most int) {
	if d == nil {
		for range names {
			counts = append(counts, 0)
		}
		return counts, 0
	}
	d.mutex.RLock()
	defer d.mutex.RUnlock()
	var own map[string]int
	if p := d.placements[placement]; p != nil {
		own = p.counts
	}
	for name, n := range d.total {
		if name != "" && n > most {
			most = max(most, n-own[name])
		}
	}
	for name := range names {
		counts = append(counts, d.total[name]-own[name])
	}
	return counts, most
}
