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

// The limits of one report for sets, and again for placing claims, in CEL cost units and steps: see [NewBudget].
const (
	DefaultCost  uint64 = 500_000_000
	DefaultSteps int64  = 2_000_000
)

// NewBudget returns a budget that ends a report.
func NewBudget() *allocator.AttemptBudget {
	budget := allocator.Budget{Cost: DefaultCost, Steps: DefaultSteps}
	return allocator.NewSeparateBudgets(budget, budget)
}

// Options say what is to be found out.
type Options struct {
	// Class and Constraint limit the shapes, "" is for all. Counts are looked at instead of what
	// claims ask for, if there are any.
	Class, Constraint string
	Counts            []int
	// Usual has the usual counts of each constraint looked at, too, and not only those that claims ask for: what others read
	// does not end when somebody asks for something else. They don't change what the other numbers are.
	Usual bool
	// Stays, unless it is nil, names claims that are not placed anew, and neither are those that
	// belong together with one: what they ask for is not evaluated.
	Stays func(*resourceapi.ResourceClaim) bool
	// CacheBytes limits the memory for what is found out on the way. 0 is
	// [allocator.DefaultCacheBytes].
	CacheBytes int64
}

// Report is what is said of a cluster.
type Report struct {
	// Nodes is how many nodes were looked at, Claims how many claims have devices, Pinned how many of
	// them stay where they are in all that is tried.
	Nodes  int `json:"nodes"`
	Claims int `json:"claims"`
	Pinned int `json:"pinned"`
	// Shapes are ordered by class and constraint, the most devices first.
	Shapes []Shape `json:"shapes"`
	// NotPacked is why no better packing was looked for to the end, "" if it was.
	NotPacked string `json:"notPacked,omitempty"`
}

// Shape is what is said of one shape, as if nobody asked for others.
type Shape struct {
	Class      string `json:"class"`
	Constraint string `json:"constraint"`
	// Devices is the number of devices in a set.
	Devices int `json:"devices"`
	// Asked is how many of the claims ask for it.
	Asked int `json:"asked"`
	// Now is how many more claims for it would get devices, Packed how many if all claims had other
	// devices, as far as was found, and Idle how many if none had any.
	Now    Count `json:"now"`
	Packed Count `json:"packed"`
	Idle   Count `json:"idle"`
	// Error is why it could not be counted.
	Error string `json:"error,omitempty"`
	// onlyUsual is that others of the constraint are asked for.
	onlyUsual bool
}

// Count is how many claims would get devices at the same time.
type Count struct {
	Sets int `json:"sets"`
	// AtLeast: not everything was looked at, there may be more.
	AtLeast bool `json:"atLeast,omitempty"`
}

func (s *Shape) shape() allocator.Shape {
	return allocator.Shape{Class: s.Class, Constraint: s.Constraint, Count: s.Devices}
}

// cluster is what a report is about.
type cluster struct {
	ctx     context.Context
	problem allocator.Problem
	nodes   []*v1.Node
	shapes  []Shape
	groups  []*group
	// places are the nodes of pools.
	places places
}

// New makes a report. The claims of the problem are ignored: those that are allocated are what is in
// use, and all of them tell what is asked for. The nodes are those where pods may go.
//
// All that is done is bounded: for the shapes by what [allocator.Allocator.CountSets] may do and by a
// [allocator.AttemptBudget] in the problem's options, for the rest by the number of nodes and claims
// that are tried. The error is one of the slices, or the context has ended.
func New(ctx context.Context, problem allocator.Problem, nodes []*v1.Node, options Options) (*Report, error) {
	c := &cluster{ctx: ctx, problem: problem, nodes: nodes, shapes: shapesOf(&problem, options)}
	c.problem.Options = append(slices.Clone(problem.Options), allocator.WithCache(newCache(options)),
		allocator.WithDefaultPreference(v1alpha1.PolicyKeepWhole), allocator.WithShapes(c.known()))
	c.places = placesOf(problem.Slices, nodes)
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

// known are the shapes that matter to the choice of devices, the most devices first: not those that are there only because they are
// usual.
func (c *cluster) known() []allocator.Shape {
	var known []allocator.Shape
	for i := range c.shapes {
		if !c.shapes[i].onlyUsual {
			known = append(known, c.shapes[i].shape())
		}
	}
	slices.SortStableFunc(known, func(a, b allocator.Shape) int { return b.Count - a.Count })
	return known[:min(len(known), allocator.MaxShapes)]
}

// whenAllocated is an allocator for the time when the claims have their devices.
func (c *cluster) whenAllocated(claims []*resourceapi.ResourceClaim) (*allocator.Allocator, error) {
	problem := c.problem
	problem.Allocated = claims
	return problem.NewAllocator(c.ctx)
}

// count counts what fits now and on idle nodes. Unless they are wanted, shapes that nobody asks for and
// no node has are dropped.
func (c *cluster) count(wanted bool) error {
	now, err := c.whenAllocated(c.problem.Allocated)
	if err != nil {
		return err
	}
	idle, err := c.whenAllocated(nil)
	if err != nil {
		return err
	}
	for _, s := range c.inTurn() {
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

// inTurn are the shapes, last those that are only usual: a budget that is used up has them left out, and no other.
func (c *cluster) inTurn() []*Shape {
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

// mayGain tells whether there could be more sets of a shape. No packing has more than idle nodes.
func (c *cluster) mayGain() bool {
	return slices.ContainsFunc(c.shapes, func(s Shape) bool {
		return s.Error == "" && (s.Now.Sets < s.Idle.Sets || s.Idle.AtLeast)
	})
}

// countPacked counts what fits when the claims have been packed. It is not less than what fits now:
// nothing needs to be moved.
func (c *cluster) countPacked(claims []*resourceapi.ResourceClaim) error {
	if claims == nil {
		return nil
	}
	packed, err := c.whenAllocated(claims)
	if err != nil {
		return err
	}
	for _, s := range c.inTurn() {
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

// sum counts what fits on some nodes.
func (c *cluster) sum(a *allocator.Allocator, shape allocator.Shape, nodes []*v1.Node) (Count, error) {
	counts, err := a.CountSets(c.ctx, nodes, shape)
	sum := allocator.SetCount{IsMost: true}
	for _, count := range counts {
		sum = sum.Plus(count)
	}
	return Count{Sets: sum.Sets, AtLeast: !sum.IsMost}, err
}
