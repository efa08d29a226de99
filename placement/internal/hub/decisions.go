// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// Decisions holds the PlacementDecisions of the hub, and counts for each cluster how many select it. Each change of an object
// updates the counts, so that the prioritizer Balance need not read all decisions of all Placements. Decisions is safe for
// concurrent use.
type Decisions struct {
	mutex sync.RWMutex
	// objects holds the counted entries of each PlacementDecision.
	objects map[types.NamespacedName]counted
	// placements has an entry for each Placement with at least one object.
	placements map[types.NamespacedName]*objectsOf
	// total maps a cluster to the number of decisions that select it. Clusters with 0 are absent. A cluster in two objects of one
	// Placement counts twice.
	total map[string]int
	// version increases with each change of any object.
	version uint64
}

// counted holds the counted entries of one PlacementDecision, and the name of its Placement.
type counted struct {
	placement types.NamespacedName
	FormerSlice
}

// objectsOf holds the names of one Placement's objects.
type objectsOf struct {
	names map[string]struct{}
	// version is the value of Decisions.version after the last change of one of these objects.
	version uint64
}

// Former is the former decision on one Placement, read from its PlacementDecisions.
type Former struct {
	// Decisions maps a cluster to the entry that selects it. If several objects contain the cluster, the entry in the last object
	// counts. Entries without a cluster name are ignored.
	Decisions map[string]formerDecision
	// Slices holds the objects whose names have the form of SliceName, in the order of their numbers.
	Slices []FormerSlice
}

// FormerSlice holds the entries of one PlacementDecision.
type FormerSlice struct {
	// Number is the number in the name of the object.
	Number int
	// Group is the index of the decision group in the label of the object. It is -1 if the label is missing or not a number.
	Group     int
	Decisions []clusterv1beta1.ClusterDecision
}

// Chose reports whether the former decision selects the cluster.
func (f *Former) Chose(name string) bool {
	_, chosen := f.Decisions[name]
	return chosen
}

// formerDecision is the entry that selects a cluster. times is the number of the Placement's entries that select the cluster.
type formerDecision struct {
	clusterv1beta1.ClusterDecision
	times int
}

// NewDecisions returns Decisions with these objects.
func NewDecisions(objects ...*clusterv1beta1.PlacementDecision) *Decisions {
	d := &Decisions{
		objects:    map[types.NamespacedName]counted{},
		placements: map[types.NamespacedName]*objectsOf{},
		total:      map[string]int{},
	}
	for _, object := range objects {
		d.Set(object)
	}
	return d
}

// Set adds an object, or replaces the object with the same namespace and name. The object must not be modified later.
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
		FormerSlice: FormerSlice{Group: -1, Decisions: object.Status.Decisions},
	}
	entry.Number = sliceNumber(entry.placement.Name, object.Name)
	if index, err := strconv.Atoi(object.Labels[clusterv1beta1.DecisionGroupIndexLabel]); err == nil {
		entry.Group = index
	}
	d.objects[key] = entry
	own := d.placements[entry.placement]
	if own == nil {
		own = &objectsOf{names: map[string]struct{}{}}
		d.placements[entry.placement] = own
	}
	own.names[object.Name], own.version = struct{}{}, d.version
	for _, decision := range entry.Decisions {
		add(d.total, decision.ClusterName, 1)
	}
}

// Delete removes an object if it is present.
func (d *Decisions) Delete(namespace, name string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.version++
	d.remove(types.NamespacedName{Namespace: namespace, Name: name})
}

// Versions returns the version of all objects and the version of one Placement's objects. own is zero if the Placement has no
// objects. A version changes with each change of one of its objects.
func (d *Decisions) Versions(namespace, placement string) (all, own uint64) {
	if d == nil {
		return 0, 0
	}
	d.mutex.RLock()
	defer d.mutex.RUnlock()
	if of := d.placements[types.NamespacedName{Namespace: namespace, Name: placement}]; of != nil {
		own = of.version
	}
	return d.version, own
}

func (d *Decisions) remove(key types.NamespacedName) {
	entry, found := d.objects[key]
	if !found {
		return
	}
	delete(d.objects, key)
	own := d.placements[entry.placement]
	own.version = d.version
	for _, decision := range entry.Decisions {
		add(d.total, decision.ClusterName, -1)
	}
	if delete(own.names, key.Name); len(own.names) == 0 {
		delete(d.placements, entry.placement)
	}
}

func add(counts map[string]int, name string, n int) {
	if counts[name] += n; counts[name] == 0 {
		delete(counts, name)
	}
}

// Former returns the former decision on a Placement.
func (d *Decisions) Former(namespace, placement string) *Former {
	if d == nil {
		return &Former{}
	}
	d.mutex.RLock()
	defer d.mutex.RUnlock()
	objects, n := d.of(types.NamespacedName{Namespace: namespace, Name: placement}), 0
	for _, object := range objects {
		n += len(object.Decisions)
	}
	result := &Former{Decisions: make(map[string]formerDecision, n)}
	for _, object := range objects {
		for _, decision := range object.Decisions {
			if name := decision.ClusterName; name != "" {
				result.Decisions[name] = formerDecision{decision, result.Decisions[name].times + 1}
			}
		}
		if object.Number > 0 {
			result.Slices = append(result.Slices, object.FormerSlice)
		}
	}
	slices.SortFunc(result.Slices, func(a, b FormerSlice) int { return cmp.Compare(a.Number, b.Number) })
	return result
}

// of returns the objects of a Placement, sorted by name.
func (d *Decisions) of(placement types.NamespacedName) []counted {
	own := d.placements[placement]
	if own == nil {
		return nil
	}
	result := make([]counted, 0, len(own.names))
	for _, name := range slices.Sorted(maps.Keys(own.names)) {
		result = append(result, d.objects[types.NamespacedName{Namespace: placement.Namespace, Name: name}])
	}
	return result
}

// Others returns, for each of the n clusters, how many decisions of other Placements select it. most is the largest such number
// of any cluster on the hub. own is the former decision of the Placement that is being decided.
func (d *Decisions) Others(own *Former, clusters iter.Seq[*clusterv1.ManagedCluster], n int) (counts []int, most int) {
	if d == nil {
		return make([]int, n), 0
	}
	counts = make([]int, 0, n)
	d.mutex.RLock()
	defer d.mutex.RUnlock()
	for name, n := range d.total {
		if name != "" && n > most {
			most = max(most, n-own.Decisions[name].times)
		}
	}
	for c := range clusters {
		counts = append(counts, d.total[c.Name]-own.Decisions[c.Name].times)
	}
	return counts, most
}

// SliceName returns the name of a Placement's PlacementDecision with this number. Numbers start at 1.
func SliceName(placement string, number int) string {
	return placement + "-decision-" + strconv.Itoa(number)
}

// sliceNumber returns the number in the name of a PlacementDecision. It returns 0 if the name does not have the form of
// SliceName.
func sliceNumber(placement, name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(name, placement+"-decision-"))
	if err != nil || n < 1 || SliceName(placement, n) != name {
		return 0
	}
	return n
}
