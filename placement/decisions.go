// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
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
	// version is another one after each change.
	version uint64
}

type counted struct {
	placement types.NamespacedName
	formerSlice
}

type chosen struct {
	objects map[string]struct{}
	counts  map[string]int
	// former is what the objects say; nil if it must be collected anew. It is never
	// modified.
	former *former
}

// former is what the PlacementDecisions of one Placement say.
type former struct {
	// decisions are those of all objects by cluster. An empty name is no decision; of
	// several on one cluster the one in the last object counts.
	decisions map[string]clusterv1beta1.ClusterDecision
	// slices are the objects that have the name of a slice, in order of their numbers.
	slices []formerSlice
}

// noFormer is that of a Placement without objects.
var noFormer = &former{}

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
	d.version++
	key := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	d.remove(key)
	entry := counted{
		placement:   types.NamespacedName{Namespace: object.Namespace, Name: object.Labels[clusterv1beta1.PlacementLabel]},
		formerSlice: formerSlice{group: -1, decisions: object.Status.Decisions},
	}
	entry.number = sliceNumber(entry.placement.Name, object.Name)
	if index, err := strconv.Atoi(object.Labels[clusterv1beta1.DecisionGroupIndexLabel]); err == nil {
		entry.group = index
	}
	d.objects[key] = entry
	own := d.placements[entry.placement]
	if own == nil {
		own = &chosen{objects: map[string]struct{}{}, counts: map[string]int{}}
		d.placements[entry.placement] = own
	}
	own.objects[object.Name], own.former = struct{}{}, nil
	for _, decision := range entry.decisions {
		add(own.counts, decision.ClusterName, 1)
		add(d.total, decision.ClusterName, 1)
	}
}

// Delete removes an object; it need not be there.
func (d *Decisions) Delete(namespace, name string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.version++
	d.remove(types.NamespacedName{Namespace: namespace, Name: name})
}

// current tells the states apart.
func (d *Decisions) current() uint64 {
	if d == nil {
		return 0
	}
	d.mutex.RLock()
	defer d.mutex.RUnlock()
	return d.version
}

func (d *Decisions) remove(key types.NamespacedName) {
	entry, found := d.objects[key]
	if !found {
		return
	}
	delete(d.objects, key)
	own := d.placements[entry.placement]
	own.former = nil
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

// former returns what the objects of one Placement say.
func (d *Decisions) former(placement types.NamespacedName) *former {
	if d == nil {
		return noFormer
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	own := d.placements[placement]
	if own == nil {
		return noFormer
	}
	if own.former == nil {
		own.former = d.collect(placement.Namespace, own)
	}
	return own.former
}

func (d *Decisions) collect(namespace string, own *chosen) *former {
	result := &former{decisions: make(map[string]clusterv1beta1.ClusterDecision, len(own.counts))}
	for _, name := range slices.Sorted(maps.Keys(own.objects)) {
		object := d.objects[types.NamespacedName{Namespace: namespace, Name: name}]
		for _, decision := range object.decisions {
			if decision.ClusterName != "" {
				result.decisions[decision.ClusterName] = decision
			}
		}
		if object.number > 0 {
			result.slices = append(result.slices, object.formerSlice)
		}
	}
	slices.SortFunc(result.slices, func(a, b formerSlice) int { return cmp.Compare(a.number, b.number) })
	return result
}

// others returns how often other Placements chose the named clusters, of which there are n, and
// the most that they chose any cluster.
func (d *Decisions) others(placement types.NamespacedName, n int, names func(yield func(string) bool)) (counts []int, most int) {
	if d == nil {
		return make([]int, n), 0
	}
	counts = make([]int, 0, n)
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
