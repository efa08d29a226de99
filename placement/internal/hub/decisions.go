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

// Decisions counts the PlacementDecisions of the hub. It is updated object by object, so that the prioritizer Balance need not
// read every decision of every Placement. It is safe for concurrent use.
type Decisions struct {
	mutex sync.RWMutex
	// objects holds every object in the form that was counted.
	objects map[types.NamespacedName]counted
	// placements holds every Placement that has objects.
	placements map[types.NamespacedName]*objectsOf
	// total maps a cluster to the number of decisions on it, if not zero. A cluster in two objects of one Placement counts twice.
	total map[string]int
	// version increases with each change.
	version uint64
}

// counted is an object with its Placement.
type counted struct {
	placement types.NamespacedName
	FormerSlice
}

// objectsOf holds the objects of one Placement.
type objectsOf struct {
	names map[string]struct{}
	// version is the value of Decisions.version after the last change to these objects.
	version uint64
}

// Former is the former decision on one Placement, read from its PlacementDecisions.
type Former struct {
	// Decisions maps a cluster to the decision on it. If several objects contain the cluster, the last object counts. Decisions
	// without a cluster name are ignored.
	Decisions map[string]formerDecision
	// Slices holds the objects whose names contain the number of a slice, in order of the numbers.
	Slices []FormerSlice
}

// FormerSlice holds the decisions of one PlacementDecision.
type FormerSlice struct {
	// Number is the number in the name of the object.
	Number int
	// Group is the index of the decision group in the label of the object, or -1 if the label is missing or no number.
	Group     int
	Decisions []clusterv1beta1.ClusterDecision
}

// Chose reports whether the former decision contains a cluster.
func (f *Former) Chose(name string) bool {
	_, chosen := f.Decisions[name]
	return chosen
}

// formerDecision is the decision on a cluster. times counts how often the Placement's objects contain the cluster.
type formerDecision struct {
	clusterv1beta1.ClusterDecision
	times int
}

// NewDecisions returns Decisions that hold objects.
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

// Set adds an object. It replaces an object with the same namespace and name. The object must not be modified later.
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

// Delete removes an object if it exists.
func (d *Decisions) Delete(namespace, name string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.version++
	d.remove(types.NamespacedName{Namespace: namespace, Name: name})
}

// Versions returns the version of all objects and the version of the objects of one Placement. The latter is zero if the
// Placement has no objects. A version changes with every change of its objects.
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

// Others returns, for each of n clusters, the number of other Placements' decisions on it. most is the largest such number of any
// cluster on the hub. own is the former decision of the Placement that is being decided.
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

// SliceName returns the name of the PlacementDecision with a number, starting at 1.
func SliceName(placement string, number int) string {
	return placement + "-decision-" + strconv.Itoa(number)
}

// sliceNumber returns the number in the name of a PlacementDecision, or 0 if SliceName never returns this name.
func sliceNumber(placement, name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(name, placement+"-decision-"))
	if err != nil || n < 1 || SliceName(placement, n) != name {
		return 0
	}
	return n
}
