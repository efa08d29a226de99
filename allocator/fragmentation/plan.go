// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	"cmp"
	"errors"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
)

// One claim that leaves seldom makes a set: a block of eight has three others in it. So what is looked
// for are sets that are cheap to clear, and for each device that has to be moved the most sets that
// can be had then. The claims that are in one go where they break the least. Whether there are more
// sets in the end is counted, not assumed.

// Limits on what is tried for one step: sets that are looked at, and ways to clear one that are tried.
const (
	maxSetsLookedAt  = 2_000_000
	maxClearings     = 256
	maxTriedClearing = 16
)

// Step is what has to be moved for more sets of a shape.
type Step struct {
	Class      string `json:"class"`
	Constraint string `json:"constraint"`
	Devices    int    `json:"devices"`
	// More is how many more claims for the shape fit then.
	More int `json:"more"`
	// Moves are to be made in this order.
	Moves []Move `json:"moves"`
}

// Move is what moves together: the claims of a pod, or of several.
type Move struct {
	Claims []string `json:"claims"`
	Pods   []string `json:"pods,omitempty"`
	// From and To are nodes, "" if several can use the devices.
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	// Devices are what it has, and NewDevices what it would get.
	Devices    []string `json:"devices"`
	NewDevices []string `json:"newDevices"`
}

// clearing is a set that could be had if some groups were not there.
type clearing struct {
	node   *v1.Node
	groups []int
	// devices is how many are to be moved.
	devices int
	// after are all groups when it is done, more is how many more sets there are then.
	after []*group
	moves []Move
	more  int
}

// plan is what to move first, at most so many groups.
func (c *cluster) plan(moves int) ([]Step, error) {
	groups := slices.Clone(c.groups)
	shapes := slices.Clone(c.shapes)
	slices.SortStableFunc(shapes, func(a, b Shape) int { return cmp.Compare(b.Devices, a.Devices) })
	var steps []Step
	for i := range shapes {
		s := &shapes[i]
		for moves > 0 && s.isShort() {
			best, err := c.bestClearing(groups, shapes[:i+1], moves)
			if err != nil {
				return nil, err
			}
			if best == nil {
				break
			}
			steps = append(steps, Step{Class: s.Class, Constraint: s.Constraint, Devices: s.Devices, More: best.more, Moves: best.moves})
			groups, moves = best.after, moves-len(best.moves)
			if err := c.recount(groups, shapes); err != nil {
				return nil, err
			}
		}
	}
	return steps, nil
}

// recount counts what fits when the groups are where they are.
func (c *cluster) recount(groups []*group, shapes []Shape) error {
	a, err := c.whenAllocated(claimsOf(groups))
	if err != nil {
		return err
	}
	for i := range shapes {
		if s := &shapes[i]; s.Error == "" {
			if s.Now, err = c.sum(a, s.shape(), c.nodes); err != nil {
				return err
			}
		}
	}
	return nil
}

// bestClearing is the one with the most sets of the last shape for each device that is moved. There
// are not fewer sets of the other shapes, which are larger. nil if there is none.
func (c *cluster) bestClearing(groups []*group, shapes []Shape, moves int) (*clearing, error) {
	wanted := &shapes[len(shapes)-1]
	all, err := c.clearings(groups, wanted.shape(), moves)
	if err != nil {
		return nil, err
	}
	var best *clearing
	tried := 0
	for _, one := range all {
		if tried == maxTriedClearing {
			break
		}
		if more, err := c.moreWithout(groups, one, wanted.shape()); err != nil {
			return nil, err
		} else if more <= 0 {
			continue
		}
		tried++
		fine, err := c.clear(groups, one, shapes)
		if err != nil {
			return nil, err
		}
		if fine && (best == nil || one.more*best.devices > best.more*one.devices) {
			best = one
		}
	}
	return best, nil
}

// clearings are the ways to clear a set, those first for which the fewest devices are moved.
func (c *cluster) clearings(groups []*group, shape allocator.Shape, moves int) ([]*clearing, error) {
	owners := map[structured.DeviceID][]int{}
	inUse := map[string]bool{}
	for i, g := range groups {
		for _, id := range g.devices {
			if !slices.Contains(owners[id], i) {
				owners[id] = append(owners[id], i)
			}
			inUse[c.places.nodes[poolOf(id)]] = true
		}
	}
	a, err := c.whenAllocated(nil)
	if err != nil {
		return nil, err
	}
	var all []*clearing
	left := maxSetsLookedAt
	for _, node := range c.nodes {
		if !inUse[node.Name] && !inUse[""] || left <= 0 {
			continue
		}
		sets, isAll, err := a.SetsOf(c.ctx, node, shape)
		if err != nil {
			return nil, err
		}
		left -= len(sets)
		if !isAll {
			// What is gained could not be told.
			continue
		}
		seen := map[string]bool{}
		for _, set := range sets {
			one := &clearing{node: node, groups: inTheWay(set, owners)}
			key := keyOf(one.groups)
			if len(one.groups) == 0 || len(one.groups) > moves || seen[key] {
				continue
			}
			seen[key] = true
			if slices.ContainsFunc(one.groups, func(i int) bool { return groups[i].pinned }) {
				continue
			}
			for _, i := range one.groups {
				one.devices += len(groups[i].devices)
			}
			all = append(all, one)
		}
		all = cheapest(all)
	}
	return all, nil
}

// cheapest keeps so many that may be tried.
func cheapest(all []*clearing) []*clearing {
	slices.SortStableFunc(all, func(a, b *clearing) int {
		return cmp.Or(cmp.Compare(a.devices, b.devices), cmp.Compare(len(a.groups), len(b.groups)))
	})
	return all[:min(len(all), maxClearings)]
}

// inTheWay are the groups that have a device of a set.
func inTheWay(set []structured.DeviceID, owners map[structured.DeviceID][]int) []int {
	var groups []int
	for _, id := range set {
		for _, i := range owners[id] {
			if !slices.Contains(groups, i) {
				groups = append(groups, i)
			}
		}
	}
	slices.Sort(groups)
	return groups
}

// without are the groups that are not cleared away.
func without(groups []*group, one *clearing) []*group {
	var rest []*group
	for i, g := range groups {
		if !slices.Contains(one.groups, i) {
			rest = append(rest, g)
		}
	}
	return rest
}

// moreWithout is how many more sets a node has when a set of it is cleared: what is gained is no more.
func (c *cluster) moreWithout(groups []*group, one *clearing, shape allocator.Shape) (int, error) {
	before, err := c.countOn(groups, shape, []*v1.Node{one.node})
	if err != nil {
		return 0, err
	}
	after, err := c.countOn(without(groups, one), shape, []*v1.Node{one.node})
	if before.AtLeast {
		return 0, err
	}
	return after.Sets - before.Sets, err
}

func (c *cluster) countOn(groups []*group, shape allocator.Shape, nodes []*v1.Node) (Count, error) {
	a, err := c.whenAllocated(claimsOf(groups))
	if err != nil {
		return Count{}, err
	}
	return c.sum(a, shape, nodes)
}

// clear places what is in the way, the largest first, and tells whether that makes more sets of the
// last shape and not fewer of the others.
func (c *cluster) clear(groups []*group, one *clearing, shapes []Shape) (bool, error) {
	rest := without(groups, one)
	p := c.newPlacing(rest, fitsForMove, maxTries)
	touched := map[string]bool{one.node.Name: true}
	one.after, one.moves = rest, nil
	for _, i := range slices.SortedStableFunc(slices.Values(one.groups), func(a, b int) int { return cmp.Compare(len(groups[b].devices), len(groups[a].devices)) }) {
		moved, node, err := p.place(groups[i])
		if errors.Is(err, errTriedEnough) || err == nil && moved == nil {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		p.add(moved, node)
		touched[node] = true
		one.after = append(one.after, moved)
		one.moves = append(one.moves, c.move(groups[i], moved, node))
	}
	var nodes []*v1.Node
	for _, node := range c.nodes {
		if touched[node.Name] {
			nodes = append(nodes, node)
		}
	}
	for i := range shapes {
		if shapes[i].Error != "" {
			continue
		}
		shape := shapes[i].shape()
		before, err := c.countOn(groups, shape, nodes)
		if err != nil {
			return false, err
		}
		after, err := c.countOn(one.after, shape, nodes)
		if err != nil {
			return false, err
		}
		one.more = after.Sets - before.Sets
		if one.more < 0 || before.AtLeast && i == len(shapes)-1 {
			return false, nil
		}
	}
	return one.more > 0, nil
}

// move says what a group has and would get.
func (c *cluster) move(g, moved *group, node string) Move {
	m := Move{Pods: g.pods, From: c.places.nodeOf(g.devices), To: node}
	for _, claim := range g.claims {
		m.Claims = append(m.Claims, nameOf(claim))
	}
	for _, id := range g.devices {
		m.Devices = append(m.Devices, id.String())
	}
	for _, id := range moved.devices {
		m.NewDevices = append(m.NewDevices, id.String())
	}
	return m
}

// keyOf tells sets of groups apart.
func keyOf(groups []int) string {
	var key []byte
	for _, i := range groups {
		key = append(key, byte(i), byte(i>>8), byte(i>>16), byte(i>>24))
	}
	return string(key)
}
