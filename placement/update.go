// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
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
func Updates(former, wanted []*clusterv1beta1.PlacementDecision) []Step {
	u := newUpdating(former, wanted)
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
	// stays are the clusters in former and wanted objects. places is the wanted object
	// of each, times in how many objects it is at the moment.
	stays  map[string]bool
	places map[string]*clusterv1beta1.PlacementDecision
	times  map[string]int
	parked []*clusterv1beta1.PlacementDecision
	taken  map[string]bool
}

// change is from one state of an object to another; either may be nil.
type change struct {
	from, to *clusterv1beta1.PlacementDecision
	// leaves are the clusters that stay, but in another object.
	leaves []string
}

func newUpdating(former, wanted []*clusterv1beta1.PlacementDecision) *updating {
	u := &updating{
		stays: map[string]bool{}, places: map[string]*clusterv1beta1.PlacementDecision{},
		times: map[string]int{}, taken: map[string]bool{},
	}
	before := map[string]*clusterv1beta1.PlacementDecision{}
	for _, object := range former {
		before[object.Name], u.taken[object.Name] = object, true
		for _, name := range clustersOf(object) {
			u.times[name]++
		}
	}
	for _, object := range wanted {
		u.taken[object.Name] = true
		for _, name := range clustersOf(object) {
			u.stays[name], u.places[name] = u.times[name] > 0, object
		}
		if from := before[object.Name]; from == nil || !same(from, object) {
			u.pending = append(u.pending, &change{from: from, to: object})
		}
		delete(before, object.Name)
	}
	for _, object := range former {
		if before[object.Name] == object {
			u.pending = append(u.pending, &change{from: object})
		}
	}
	for _, c := range u.pending {
		c.leaves = u.leaving(c)
	}
	return u
}

func (u *updating) leaving(c *change) []string {
	var result []string
	kept := clustersOf(c.to)
	for _, name := range clustersOf(c.from) {
		if _, stays := slices.BinarySearch(kept, name); !stays && u.stays[name] {
			result = append(result, name)
		}
	}
	return result
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

// missing are the clusters that stay and would be in no object after a change.
func (u *updating) missing(c *change) []string {
	var result []string
	for _, name := range c.leaves {
		if u.times[name] < 2 {
			result = append(result, name)
		}
	}
	return result
}

func (u *updating) apply(c *change) {
	for _, name := range clustersOf(c.to) {
		u.times[name]++
	}
	for _, name := range clustersOf(c.from) {
		u.times[name]--
	}
	if c.to == nil {
		u.steps = append(u.steps, Step{c.from, true})
	} else {
		u.steps = append(u.steps, Step{c.to, false})
	}
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
		if place := u.places[name]; !slices.Contains(at, place) {
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
