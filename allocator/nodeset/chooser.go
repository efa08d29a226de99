// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"errors"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// Chooser holds compiled expressions and a cache, which all searches share. It is safe for concurrent use.
type Chooser struct {
	*allocator.Preparer
	environment *device.Environment
	cache       *allocator.Cache
}

// cacheBytes is the size of a Chooser's cache.
const cacheBytes = 64 << 20

// NewChooser returns a Chooser. It reports compilations and evaluations to the observer.
func NewChooser(observer cel.Observer) (*Chooser, error) {
	environment, err := device.NewNodeEnvironment(cel.Config{Observer: observer})
	if err != nil {
		return nil, err
	}
	preparer, err := allocator.NewPreparer(environment, dracel.Features{})
	if err != nil {
		return nil, err
	}
	// Compile the expression now, so that later compilations find it in the cache.
	if _, err := environment.CompileInt(context.Background(), mostAble); err != nil {
		return nil, err
	}
	return &Chooser{preparer, environment, allocator.NewCache(allocator.CacheBytes(cacheBytes))}, nil
}

// Environment returns the environment that compiles the expressions over nodes.
func (c *Chooser) Environment() *device.Environment { return c.environment }

// Classes is a class lister whose Get returns the class of nodes for any name.
type Classes struct{}

// Get returns a class without selectors.
func (Classes) Get(name string) (*resourceapi.DeviceClass, error) {
	class := &resourceapi.DeviceClass{}
	class.Name = name
	return class, nil
}

// List implements [structured.DeviceClassLister].
func (Classes) List() ([]*resourceapi.DeviceClass, error) { return nil, nil }

// chosen is a set of nodes that a search found, in the order of the search.
type chosen struct {
	members []member
	allocator.Details
}

// choose returns the first set of nodes that satisfies the expression and the condition only. With a preference it returns the
// best such set. It returns nil if there is no such set. only may be nil. The error names the group or the constraint's object.
func (c *Chooser) choose(ctx context.Context, p *Problem, prepared *allocator.PreparedClaim, nodes []Node, only *condition, opts ...allocator.Option) (*chosen, error) {
	if size := p.Size(); size > v1alpha1.MaxNodeSetSize {
		return nil, p.failed(nil, fmt.Sprintf("the group needs %d nodes, the limit is %d: use fewer pods, or a larger podsPerNode", size, v1alpha1.MaxNodeSetSize))
	}
	all := allocator.Prepared{p.Claim.UID: prepared}
	opts = append([]allocator.Option{
		allocator.WithEnvironment(c.environment), allocator.WithPrepared(all), allocator.WithCache(c.cache), allocator.WithMaxResults(v1alpha1.MaxNodeSetSize),
	}, opts...)
	r := readingOf(prepared.Expressions())
	for i := range nodes {
		if n := &nodes[i]; n.Placed && r.all && len(n.Labels) > device.MaxLabels {
			return nil, p.failed(nil, fmt.Sprintf("node %s runs a pod of the group and has more than %d labels: read labels by key in the expression", n.Name, device.MaxLabels))
		}
	}
	if err := p.checkPods(nodes); err != nil {
		return nil, err
	}
	members := p.members(nodes, r)
	if only != nil {
		opts = append(opts, allocator.WithAcceptance(only.over(members)))
	}
	indices, details, err := allocator.ChooseFrom(ctx, allocator.Problem{
		Claims: []*resourceapi.ResourceClaim{p.Claim}, Classes: Classes{}, Features: structured.Features{ListTypeAttributes: p.ReadsDevices},
		Selectors: all.SelectorsOr(c.Selectors), Options: opts,
	}, members)
	if err != nil {
		return nil, p.explain(err)
	}
	if indices == nil {
		return nil, nil
	}
	set := &chosen{Details: details}
	for _, i := range indices {
		set.members = append(set.members, members[i])
	}
	return set, nil
}

// Error wraps an error of package allocator, with a text about nodes instead of devices.
type Error struct {
	text string
	err  error
}

func (e *Error) Error() string { return e.text }

// Unwrap returns the error of package allocator.
func (e *Error) Unwrap() error { return e.err }

// failed returns an error with the given text that names the group and its constraint.
func (g *Group) failed(err error, text string) error {
	return &Error{fmt.Sprintf("PodGroup %s/%s, constraint %s/%s: %s", g.Namespace, g.Name, v1alpha1.AttributeDomain, g.Constraint.Name, text), err}
}

func (p *Problem) explain(err error) error {
	if over, ok := errors.AsType[*allocator.BudgetError](err); ok {
		return p.failed(err, fmt.Sprintf("the search exceeds its budget of %d %s, with %d of %d sets of nodes left undecided: write simple conditions joined by &&, or narrow the nodes with a nodeSelector",
			over.Limit, over.Unit, over.SetsLeft, over.Sets))
	}
	if failure, ok := errors.AsType[*cel.Error](err); ok && failure.Reason != cel.ReasonInterrupted {
		return &Error{fmt.Sprintf("%s: %s", p.Constraint.Source, failure), err}
	}
	return p.failed(err, err.Error())
}
