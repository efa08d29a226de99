// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/wellknown"
)

// Step is one write in the change from the former PlacementDecisions to the wanted ones.
type Step struct {
	// Object is the object to create or update. If Delete is set, the object is deleted, and only its namespace and name are used.
	Object *clusterv1beta1.PlacementDecision
	Delete bool
}

// Updates returns the steps that change the former PlacementDecisions of a Placement into the wanted ones. After each step, a
// cluster that stays selected is in at least one PlacementDecision:
//
//  1. If clusters leave an object and an unchanged object already contains them, the unchanged object is written again (see
//     below).
//  2. A change that removes clusters from an object waits until the steps have written these clusters to other objects.
//  3. If changes wait for each other, their clusters are first written to a temporary object, which is deleted at the end.
//
// The guarantee also holds if other writers act at the same time, such as a paused leader or an abandoned request, and if
// former is out of date. It requires that
//
//   - each update or deletion requires the object's version in former, or the version that an earlier step has made, and each
//     creation requires that the object does not exist;
//   - the steps end at the first step that fails or whose result is not certain; and
//   - the steps end if they find an object that is not in former. New steps are then computed.
//
// If a cluster is in two former objects, it can't simply be removed from one of them: another writer may be about to remove it
// from the other object for the same reason. So a step must write the cluster first, even to an object that needs no change.
// This write sets [wellknown.AnnotationConfirmed], so a writer with an earlier version of the object can't change it any more.
// Such a write is needed only after steps that were not completed.
//
// Proof: suppose that writer A removes a cluster from an object and then no object contains the cluster. Before that, A wrote
// the cluster to another object. A writer B removed the cluster from that object, based on the version that A wrote. So B
// computed its steps later than A. Before that, B also wrote the cluster to a third object. A writer C with still later steps
// removed the cluster from the third object, and so on. But there are only finitely many writers.
func Updates(former, wanted []*clusterv1beta1.PlacementDecision) []Step {
	u := newUpdating(former, wanted)
	u.confirm()
	for len(u.pending) > 0 {
		if !u.advance() {
			u.park()
		}
	}
	for _, object := range u.parked {
		u.steps = append(u.steps, Step{object, true})
	}
	return u.steps
}

// updating is the state of the computation of the steps.
type updating struct {
	steps []Step
	// pending holds the changes that have no step yet.
	pending []*change
	// unchanged maps a wanted object to the former object, if both are equal.
	unchanged map[*clusterv1beta1.PlacementDecision]*clusterv1beta1.PlacementDecision
	// moves maps each cluster that leaves an object but stays selected to the wanted object that contains it. written has the
	// clusters that the steps have written. An object written with such a cluster is not changed while changes are pending. parked
	// lists the temporary objects. taken has the names in use.
	moves   map[string]*clusterv1beta1.PlacementDecision
	written map[string]bool
	parked  []*clusterv1beta1.PlacementDecision
	taken   map[string]bool
}

// change changes one object from the state from to the state to. from is nil for a new object, and to is nil for a deletion.
type change struct {
	from, to *clusterv1beta1.PlacementDecision
	// leaves holds the clusters that leave the object but stay selected.
	leaves []string
}

func newUpdating(former, wanted []*clusterv1beta1.PlacementDecision) *updating {
	u := &updating{
		unchanged: map[*clusterv1beta1.PlacementDecision]*clusterv1beta1.PlacementDecision{},
		moves:     map[string]*clusterv1beta1.PlacementDecision{},
		written:   map[string]bool{}, taken: map[string]bool{},
	}
	before := map[string]*clusterv1beta1.PlacementDecision{}
	for _, object := range former {
		before[object.Name], u.taken[object.Name] = object, true
	}
	for _, object := range wanted {
		u.taken[object.Name] = true
		if from := before[object.Name]; from == nil || !same(from, object) {
			u.pending = append(u.pending, &change{from: from, to: object})
		} else {
			u.unchanged[object] = from
		}
		delete(before, object.Name)
	}
	for _, object := range former {
		if before[object.Name] == object {
			u.pending = append(u.pending, &change{from: object})
		}
	}
	u.move(wanted)
	return u
}

// move finds, for each pending change, the clusters that leave the object but stay selected. Most updates have few such
// clusters, so move looks up only these.
func (u *updating) move(wanted []*clusterv1beta1.PlacementDecision) {
	for _, c := range u.pending {
		c.leaves = leaving(c)
		for _, name := range c.leaves {
			u.moves[name] = nil
		}
	}
	if len(u.moves) == 0 {
		return
	}
	for _, object := range wanted {
		for i := range object.Status.Decisions {
			if name := object.Status.Decisions[i].ClusterName; u.isMoving(name) {
				u.moves[name] = object
			}
		}
	}
	for _, c := range u.pending {
		c.leaves = slices.DeleteFunc(c.leaves, func(name string) bool { return u.moves[name] == nil })
	}
}

func (u *updating) isMoving(name string) bool {
	_, moving := u.moves[name]
	return moving
}

// confirm adds steps that write unchanged objects again if they contain clusters that leave other objects.
func (u *updating) confirm() {
	for _, c := range u.pending {
		for _, name := range c.leaves {
			place := u.moves[name]
			from := u.unchanged[place]
			if from == nil || u.written[name] {
				continue
			}
			object := place.DeepCopy()
			if object.Annotations == nil {
				object.Annotations = map[string]string{}
			}
			object.Annotations[wellknown.AnnotationConfirmed] = from.ResourceVersion
			u.apply(&change{to: object})
		}
	}
}

// leaving returns the clusters that the object contains before the change and not after it.
func leaving(c *change) []string {
	kept := clustersOf(c.to)
	return slices.DeleteFunc(clustersOf(c.from), func(name string) bool {
		_, stays := slices.BinarySearch(kept, name)
		return stays
	})
}

// same reports whether the object from already has the labels and decisions of to, so that nothing must be written.
func same(from, to *clusterv1beta1.PlacementDecision) bool {
	for key, value := range to.Labels {
		if has, ok := from.Labels[key]; !ok || has != value {
			return false
		}
	}
	return equality.Semantic.DeepEqual(from.OwnerReferences, to.OwnerReferences) &&
		slices.Equal(from.Status.Decisions, to.Status.Decisions)
}

// clustersOf returns the names of the clusters of an object, sorted and without duplicates.
func clustersOf(object *clusterv1beta1.PlacementDecision) []string {
	if object == nil {
		return nil
	}
	result := make([]string, len(object.Status.Decisions))
	for i, decision := range object.Status.Decisions {
		result[i] = decision.ClusterName
	}
	slices.Sort(result)
	return slices.Compact(result)
}

// advance adds steps for the changes that need not wait for any cluster. It reports whether there was such a change.
func (u *updating) advance() bool {
	before := len(u.pending)
	u.pending = slices.DeleteFunc(u.pending, func(c *change) bool {
		if len(u.missing(c)) > 0 {
			return false
		}
		u.apply(c)
		return true
	})
	return len(u.pending) < before
}

// missing returns the clusters that leave the object and were not written to another object yet.
func (u *updating) missing(c *change) []string {
	var result []string
	for _, name := range c.leaves {
		if !u.written[name] {
			result = append(result, name)
		}
	}
	return result
}

func (u *updating) apply(c *change) {
	if c.to == nil {
		u.steps = append(u.steps, Step{c.from, true})
		return
	}
	for _, decision := range c.to.Status.Decisions {
		if u.isMoving(decision.ClusterName) {
			u.written[decision.ClusterName] = true
		}
	}
	u.steps = append(u.steps, Step{c.to, false})
}

// park picks the pending change that waits for the fewest clusters, and adds steps that write these clusters to temporary
// objects. A temporary object has the labels of the wanted object of its clusters.
func (u *updating) park() {
	least := u.missing(u.pending[0])
	for _, c := range u.pending[1:] {
		if missing := u.missing(c); len(missing) < len(least) {
			least = missing
		}
	}
	var at []*clusterv1beta1.PlacementDecision
	for _, name := range least {
		if place := u.moves[name]; !slices.Contains(at, place) {
			at = append(at, place)
		}
	}
	for _, place := range at {
		object := u.like(place)
		for _, decision := range place.Status.Decisions {
			if slices.Contains(least, decision.ClusterName) {
				object.Status.Decisions = append(object.Status.Decisions, decision)
			}
		}
		u.parked = append(u.parked, object)
		u.apply(&change{to: object})
	}
}

// like returns a copy of the object without clusters, under an unused name.
func (u *updating) like(place *clusterv1beta1.PlacementDecision) *clusterv1beta1.PlacementDecision {
	result := place.DeepCopy()
	result.Status.Decisions = nil
	for i := len(u.taken) + 1; ; i++ {
		result.Name = fmt.Sprintf("%s-decision-%d", place.Labels[clusterv1beta1.PlacementLabel], i)
		if !u.taken[result.Name] {
			u.taken[result.Name] = true
			return result
		}
	}
}
