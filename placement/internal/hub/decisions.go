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

// Decisions counts the PlacementDecisions of the hub. It is updated object by object,
// so that the prioritizer Balance need not read every decision of every Placement. It is
// safe for concurrent use.
type Decisions struct {
	mutex sync.RWMutex
	// objects has every object, as it was counted.
	objects map[types.NamespacedName]counted
	// placements has every Placement with objects.
	placements map[types.NamespacedName]*objectsOf
	// total maps a cluster to the number of decisions on it. It has no zeros.
	total map[string]int
	// version grows with each change.
	version uint64
}

// counted is an object with its Placement.
type counted struct {
	placement types.NamespacedName
	FormerSlice
}

// objectsOf are the objects of one Placement.
type objectsOf struct {
	names map[string]struct{}
	// version is Decisions.version after the last change of one of the objects.
	version uint64
}

// Former is the former decision on one Placement, which its PlacementDecisions have.
type Former struct {
	// Decisions maps a cluster to the decision on it. If several objects have one, the last
	// object counts. A decision without a name is ignored.
	Decisions map[string]formerDecision
	// Slices are the objects whose names have the number of a slice, in order of the numbers.
	Slices []FormerSlice
}

// FormerSlice has the decisions of one PlacementDecision.
type FormerSlice struct {
	// Number is the number in the name of the object.
	Number int
	// Group is the index of the decision group in the label of the object, -1 if there is none.
	Group     int
	Decisions []clusterv1beta1.ClusterDecision
}

// Chose reports whether a cluster is in the former decision.
func (f *Former) Chose(name string) bool {
	_, chosen := f.Decisions[name]
	return chosen
}

// formerDecision is the decision on a cluster. times is the number of decisions on it.
type formerDecision struct {
	clusterv1beta1.ClusterDecision
	times int
}

// NewDecisions returns the Decisions of some objects.
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

// Delete removes an object; it need not be there.
func (d *Decisions) Delete(namespace, name string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.version++
	d.remove(types.NamespacedName{Namespace: namespace, Name: name})
}

// Versions returns the version of all objects, and the version of those of one Placement, zero if it has none. After a
// change a version is another one.
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

// Others returns, for each of n clusters, the number of decisions of other Placements on it, and the largest such
// number of any cluster. own is the former decision on the Placement that does not count.
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

// SliceName returns the name of the PlacementDecision with a number, from 1.
func SliceName(placement string, number int) string {
	return placement + "-decision-" + strconv.Itoa(number)
}

// sliceNumber returns the number in the name of a PlacementDecision, 0 if SliceName returns no such name.
func sliceNumber(placement, name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(name, placement+"-decision-"))
	if err != nil || n < 1 || SliceName(placement, n) != name {
		return 0
	}
	return n
}
