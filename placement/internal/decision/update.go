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

// Step is one change to the PlacementDecisions of a Placement.
type Step struct {
	// Object is created or updated, or deleted if Delete says so. In one to delete
	// only namespace and name matter.
	Object *clusterv1beta1.PlacementDecision
	Delete bool
}

// Updates returns the steps from the former to the wanted PlacementDecisions of a
// Placement, in an order in which a cluster that stays selected is in some
// PlacementDecision after each of them. One that must not be missing from its
// former object before another one has it waits for that. Where objects wait for
// each other, their clusters pass through an object of their own that is deleted
// in the end.
//
// That holds also if others take steps from and to other objects at the same time, as a
// leader does that was paused, or a request that nobody waits for any more, and whatever of
// former is out of date, provided that
//
//   - each object is updated or deleted in the version that former has, or that a step
//     before has made, and created only if there is none;
//   - the steps end at the first one that fails or is not known to have succeeded; and
//   - objects found on the way are none of former: the steps end, and others are made.
//
// For that, a cluster leaves an object only after one of these steps has written another
// one that has it. That former has it in two does not suffice: somebody else may be about to
// take it out of the other one, for the same reason. An object that is as it should be is
// written for this, too, with [wellknown.AnnotationConfirmed]: whoever knows an earlier version of it
// can't change it any more. It happens only after steps that did not come to their end.
//
// Why that suffices: suppose a removal leaves a cluster nowhere. The object that its writer
// has written before lost the cluster to another writer, who had read that version, and so
// had made its steps later than the first writer. That one in turn had written an object
// with the cluster, which was lost to a writer with still later steps, and so on; but there
// are only so many writers.
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

// updating is the state of making the steps.
type updating struct {
	steps []Step
	// pending are the objects yet to be changed.
	pending []*change
	// unchanged are the former objects that are as they should be, by the wanted ones.
	unchanged map[*clusterv1beta1.PlacementDecision]*clusterv1beta1.PlacementDecision
	// moves are the clusters that stay and leave an object, each with the wanted object that has it.
	// written tells that the steps have written an object that has it. What is
	// written keeps its clusters until nothing is pending.
	moves   map[string]*clusterv1beta1.PlacementDecision
	written map[string]bool
	parked  []*clusterv1beta1.PlacementDecision
	taken   map[string]bool
}

// change is from one state of an object to another; either may be nil.
type change struct {
	from, to *clusterv1beta1.PlacementDecision
	// leaves are the clusters that stay, but in another object.
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

// move finds the clusters that leave objects and stay. Most updates have none, or few: the others are not
// looked for.
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

// confirm writes the unchanged objects that have clusters which leave others.
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

// leaving are the clusters of the former state that the other one does not have.
func leaving(c *change) []string {
	kept := clustersOf(c.to)
	return slices.DeleteFunc(clustersOf(c.from), func(name string) bool {
		_, stays := slices.BinarySearch(kept, name)
		return stays
	})
}

// same tells whether there is nothing to write.
func same(from, to *clusterv1beta1.PlacementDecision) bool {
	for key, value := range to.Labels {
		if has, ok := from.Labels[key]; !ok || has != value {
			return false
		}
	}
	return equality.Semantic.DeepEqual(from.OwnerReferences, to.OwnerReferences) &&
		slices.Equal(from.Status.Decisions, to.Status.Decisions)
}

// clustersOf returns the names of the clusters of an object, sorted, each once.
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

// advance makes the changes that can be made now, and tells whether there were any.
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

// missing are the clusters that stay and are in no object yet that was written.
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

// park adds objects for the clusters that the change with the fewest waits for,
// like those in which they will be.
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

// like returns an object without clusters that looks like another one, but for a
// name that is not used.
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
