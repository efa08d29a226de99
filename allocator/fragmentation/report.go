// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// These limits of a report, in CEL cost units and steps, apply to counting sets and separately to packing ([NewBudget]).
const (
	DefaultCost  uint64 = 500_000_000
	DefaultSteps int64  = 2_000_000
)

// NewBudget returns the budget for one report.
func NewBudget() *allocator.AttemptBudget {
	budget := allocator.Budget{Cost: DefaultCost, Steps: DefaultSteps}
	return allocator.NewSeparateBudgets(budget, budget)
}

// Options configures a report.
type Options struct {
	// Class and Constraint restrict the report to the shapes of one class or constraint. "" means no restriction. If Counts is
	// not empty, it replaces the numbers of devices that claims ask for.
	Class, Constraint string
	Counts            []int
	// Usual adds sets of 2, 4, 8 and 16 devices ([allocator.UsualShapes]) to the shapes that claims ask for, so that every
	// report contains them. They don't change the counts of other shapes.
	Usual bool
	// Stays selects claims that are not moved, together with their groups. Their requests are not evaluated. Stays may be nil.
	Stays func(*resourceapi.ResourceClaim) bool
	// CacheBytes is the size of the cache for one report. 0 means [allocator.DefaultCacheBytes].
	CacheBytes int64
}

// Report describes the fragmentation of a cluster.
type Report struct {
	// Nodes counts nodes, and Claims counts claims with devices. Pinned counts those claims that packing never moves.
	Nodes  int `json:"nodes"`
	Claims int `json:"claims"`
	Pinned int `json:"pinned"`
	// Shapes lists the shapes, sorted by class, constraint, and descending number of devices.
	Shapes []Shape `json:"shapes"`
	// NotPacked is the reason why packing was not completed, or "".
	NotPacked string `json:"notPacked,omitempty"`
}

// Shape holds the counts for one shape. Each count assumes that all additional claims ask for this shape.
type Shape struct {
	Class      string `json:"class"`
	Constraint string `json:"constraint"`
	// Devices is the number of devices in a set.
	Devices int `json:"devices"`
	// Asked is the number of claims that ask for the shape.
	Asked int `json:"asked"`
	// Now is the number of additional claims for this shape that would get devices now. Packed is the number after packing.
	// Idle is the number if no devices were in use.
	Now    Count `json:"now"`
	Packed Count `json:"packed"`
	Idle   Count `json:"idle"`
	// Error is the reason why the shape could not be counted, or "".
	Error string `json:"error,omitempty"`
	// onlyUsual is true if the option Usual added the shape, and claims ask only for other shapes of the constraint.
	onlyUsual bool
}

// Count is a number of claims that can get devices at the same time.
type Count struct {
	Sets int `json:"sets"`
	// AtLeast is true if counting was not completed, so that more claims may fit.
	AtLeast bool `json:"atLeast,omitempty"`
}

func (s *Shape) shape() allocator.Shape {
	return allocator.Shape{Class: s.Class, Constraint: s.Constraint, Count: s.Devices}
}

// cluster holds the inputs of a report and the intermediate results.
type cluster struct {
	ctx     context.Context
	problem allocator.Problem
	nodes   []*v1.Node
	shapes  []Shape
	groups  []*group
	// places maps pools to nodes.
	places poolNodes
}

// New returns a report. nodes are the nodes that pods may use. problem.Allocated holds all claims of the cluster. The claims
// with devices determine the devices in use, and all claims determine the shapes. problem.Claims is ignored.
//
// [allocator.Allocator.CountSets] and the [allocator.AttemptBudget] in the problem's options limit the work on shapes. The
// number of tries limits the work on packing. An error comes from the slices or the context.
func New(ctx context.Context, problem allocator.Problem, nodes []*v1.Node, options Options) (*Report, error) {
	c := &cluster{ctx: ctx, problem: problem, nodes: nodes, shapes: shapesOf(&problem, options)}
	c.problem.Options = append(slices.Clone(problem.Options), allocator.WithCache(newCache(options)),
		allocator.WithDefaultPreference(v1alpha1.PolicyKeepWhole), allocator.WithShapes(c.decisiveShapes()))
	c.places = poolNodesOf(problem.Slices, nodes)
	c.groups = c.groupsOf(options.Stays)
	report := &Report{Nodes: len(nodes)}
	for _, g := range c.groups {
		report.Claims += len(g.claims)
		if g.pinned {
			report.Pinned += len(g.claims)
		}
	}
	if err := c.count(len(options.Counts) > 0); err != nil {
		return nil, err
	}
	if c.mayGain() {
		packed, reason, err := c.pack()
		if err != nil {
			return nil, err
		}
		report.NotPacked = reason
		if err := c.countPacked(packed); err != nil {
			return nil, err
		}
	}
	report.Shapes = c.shapes
	return report, nil
}

func newCache(options Options) *allocator.Cache {
	if options.CacheBytes > 0 {
		return allocator.NewCache(allocator.CacheBytes(options.CacheBytes))
	}
	return allocator.NewCache()
}

// decisiveShapes returns the shapes that packing tries to keep available, largest first, without shapes with onlyUsual.
func (c *cluster) decisiveShapes() []allocator.Shape {
	var known []allocator.Shape
	for i := range c.shapes {
		if !c.shapes[i].onlyUsual {
			known = append(known, c.shapes[i].shape())
		}
	}
	slices.SortStableFunc(known, func(a, b allocator.Shape) int { return b.Count - a.Count })
	return known[:min(len(known), allocator.MaxShapes)]
}

// whenAllocated returns an allocator for the cluster as if exactly the given claims were allocated.
func (c *cluster) whenAllocated(claims []*resourceapi.ResourceClaim) (*allocator.Allocator, error) {
	problem := c.problem
	problem.Allocated = claims
	return problem.NewAllocator(c.ctx)
}

// count counts the sets that fit now and on idle nodes. If wanted is false, it drops shapes that neither claims nor nodes have.
func (c *cluster) count(wanted bool) error {
	now, err := c.whenAllocated(c.problem.Allocated)
	if err != nil {
		return err
	}
	idle, err := c.whenAllocated(nil)
	if err != nil {
		return err
	}
	for _, s := range c.countingOrder() {
		s.Idle, err = c.sum(idle, s.shape(), c.nodes)
		if err == nil {
			s.Now, err = c.sum(now, s.shape(), c.nodes)
		}
		if c.ctx.Err() != nil {
			return err
		}
		if err != nil {
			s.Error = err.Error()
		}
		s.Packed = s.Now
	}
	c.shapes = slices.DeleteFunc(c.shapes, func(s Shape) bool { return s.Asked == 0 && !wanted && s.Idle == (Count{}) })
	return nil
}

// countingOrder returns the shapes in the order of counting. Shapes with onlyUsual are last, so an exhausted budget leaves them
// out first.
func (c *cluster) countingOrder() []*Shape {
	var first, last []*Shape
	for i := range c.shapes {
		if s := &c.shapes[i]; s.onlyUsual {
			last = append(last, s)
		} else {
			first = append(first, s)
		}
	}
	return append(first, last...)
}

// mayGain reports whether packing could allow more sets of a shape. The count on idle nodes is the upper bound.
func (c *cluster) mayGain() bool {
	return slices.ContainsFunc(c.shapes, func(s Shape) bool {
		return s.Error == "" && (s.Now.Sets < s.Idle.Sets || s.Idle.AtLeast)
	})
}

// countPacked counts the sets that fit after packing. It sets Packed to at least Now, because moving no claim is also possible.
func (c *cluster) countPacked(claims []*resourceapi.ResourceClaim) error {
	if claims == nil {
		return nil
	}
	packed, err := c.whenAllocated(claims)
	if err != nil {
		return err
	}
	for _, s := range c.countingOrder() {
		if s.Error != "" {
			continue
		}
		count, err := c.sum(packed, s.shape(), c.nodes)
		if err != nil {
			return err
		}
		if count.Sets > s.Now.Sets {
			s.Packed = count
		}
	}
	return nil
}

// sum returns the number of sets that fit on all the given nodes together.
func (c *cluster) sum(a *allocator.Allocator, shape allocator.Shape, nodes []*v1.Node) (Count, error) {
	counts, err := a.CountSets(c.ctx, nodes, shape)
	sum := allocator.SetCount{IsMost: true}
	for _, count := range counts {
		sum = sum.Plus(count)
	}
	return Count{Sets: sum.Sets, AtLeast: !sum.IsMost}, err
}
