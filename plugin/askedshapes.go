// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"container/list"
	"context"
	"maps"
	"math/bits"
	"slices"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// What keeps blocks whole has to know what blocks are: sets that somebody may ask for. Who asks for
// them tomorrow is unknown, so those of the last claims are taken. Whoever may create claims has an
// influence on it, and this is how little: what a set has to satisfy, classes alone say; what claims
// contribute is a number of devices, and how often; and the claims of one namespace are an eighth of
// those that are remembered.

const (
	// maxAskedClaims and maxAskedClaimsOfNamespace are how many claims are remembered.
	maxAskedClaims            = 1024
	maxAskedClaimsOfNamespace = maxAskedClaims / 8
	// maxShapesOfClaim bounds what one of them takes.
	maxShapesOfClaim = 4
	// maxShapesOfClass are told to the allocator.
	maxShapesOfClass = 8
)

// askedShapes are the shapes that the last claims of a cluster asked for. It is safe for concurrent
// use.
type askedShapes struct {
	classes v1alpha1.ClassGetter

	// mutex guards what follows.
	mutex sync.Mutex
	// claims has an askedClaim for each claim that asks for a shape, the oldest first.
	// byNamespace has its elements in the same order.
	claims      list.List
	byNamespace map[string][]*list.Element
	// counts says how many of the claims ask for a shape. It has no zeros.
	counts map[allocator.Shape]int
	// most is the result, nil if it has to be found out.
	most []allocator.Shape
}

type askedClaim struct {
	namespace string
	shapes    []allocator.Shape
}

func newAskedShapes() *askedShapes {
	return &askedShapes{byNamespace: map[string][]*list.Element{}, counts: map[allocator.Shape]int{}}
}

// watch begins to look at claims, until the context ends.
func (a *askedShapes) watch(ctx context.Context, factory informers.SharedInformerFactory) error {
	classes := factory.Resource().V1().DeviceClasses()
	a.classes = classes.Lister()
	// Who looks at the first claims waits for the classes. Nobody else waits for that.
	synced := sync.OnceValue(func() bool {
		return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) { return classes.Informer().HasSynced(), nil }) == nil
	})
	_, err := factory.Resource().V1().ResourceClaims().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		if claim, ok := object.(*resourceapi.ResourceClaim); ok && synced() {
			a.add(claim.Namespace, shapesOf(claim, a.classes))
		}
	}})
	return err
}

// add remembers a claim.
func (a *askedShapes) add(namespace string, shapes []allocator.Shape) {
	if len(shapes) == 0 {
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	switch {
	case len(a.byNamespace[namespace]) == maxAskedClaimsOfNamespace:
		a.forget(a.byNamespace[namespace][0])
	case a.claims.Len() == maxAskedClaims:
		a.forget(a.claims.Front())
	}
	a.byNamespace[namespace] = append(a.byNamespace[namespace], a.claims.PushBack(&askedClaim{namespace, shapes}))
	for _, shape := range shapes {
		a.count(shape, 1)
	}
}

// forget forgets the oldest claim of its namespace.
func (a *askedShapes) forget(oldest *list.Element) {
	claim := a.claims.Remove(oldest).(*askedClaim)
	if rest := slices.Delete(a.byNamespace[claim.namespace], 0, 1); len(rest) > 0 {
		a.byNamespace[claim.namespace] = rest
	} else {
		delete(a.byNamespace, claim.namespace)
	}
	for _, shape := range claim.shapes {
		a.count(shape, -1)
	}
}

// count counts a shape. As long as its frequency stays the same, so does the result.
func (a *askedShapes) count(shape allocator.Shape, more int) {
	before := a.counts[shape]
	after := before + more
	if a.counts[shape] = after; after == 0 {
		delete(a.counts, shape)
	}
	if frequency(before) != frequency(after) {
		a.most = nil
	}
}

// frequency tells how often a shape was asked for, about: its order of magnitude. With each change
// of the result the allocator begins to find out anew what it knows, so that one claim more should
// not matter.
func frequency(count int) int { return bits.Len(uint(count)) }

// shapes are those that were asked for most, the most frequent first and of those the largest. The
// result is not modified.
func (a *askedShapes) shapes() []allocator.Shape {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.most == nil {
		a.most = a.find()
	}
	return a.most
}

func (a *askedShapes) find() []allocator.Shape {
	order := func(s, o allocator.Shape) int {
		return cmp.Or(cmp.Compare(frequency(a.counts[o]), frequency(a.counts[s])), cmp.Compare(o.Count, s.Count),
			cmp.Compare(s.Class, o.Class), cmp.Compare(s.Constraint, o.Constraint))
	}
	byClass := map[string][]allocator.Shape{}
	for shape := range a.counts {
		most := byClass[shape.Class]
		at, _ := slices.BinarySearchFunc(most, shape, order)
		if at < maxShapesOfClass {
			most = slices.Insert(most, at, shape)
			byClass[shape.Class] = most[:min(len(most), maxShapesOfClass)]
		}
	}
	result := slices.Concat(slices.Collect(maps.Values(byClass))...)
	slices.SortFunc(result, order)
	return result
}

// shapesOf are the sets that a claim asks for with constraints that its classes define. A claim that
// defines a constraint itself asks for what others won't.
func shapesOf(claim *resourceapi.ResourceClaim, classes v1alpha1.ClassGetter) []allocator.Shape {
	hasDefaults := func(name string) bool {
		class, err := classes.Get(name)
		return err == nil && v1alpha1.HasDefaults(class)
	}
	if !v1alpha1.HasConstraints(claim, hasDefaults) {
		return nil
	}
	constraints, err := v1alpha1.Resolve(claim, classes)
	if err != nil {
		// Whoever tries to allocate it says so.
		return nil
	}
	var shapes []allocator.Shape
	for i := range constraints {
		shape, ok := shapeOf(claim, &constraints[i])
		if ok && !slices.Contains(shapes, shape) && len(shapes) < maxShapesOfClaim {
			shapes = append(shapes, shape)
		}
	}
	return shapes
}

// shapeOf is the set that a constraint of a class is about, if it is of so many devices of one
// class.
func shapeOf(claim *resourceapi.ResourceClaim, constraint *v1alpha1.Constraint) (shape allocator.Shape, ok bool) {
	if constraint.Source.Object.Kind != "DeviceClass" {
		return shape, false
	}
	for i := range claim.Spec.Devices.Requests {
		request := &claim.Spec.Devices.Requests[i]
		if len(constraint.Requests) > 0 && !slices.ContainsFunc(constraint.Requests, func(name string) bool { return resourceclaim.BaseRequestRef(name) == request.Name }) {
			continue
		}
		exactly := request.Exactly
		switch {
		case exactly == nil, exactly.AllocationMode != resourceapi.DeviceAllocationModeExactCount, exactly.Count > resourceapi.AllocationResultsMaxSize:
			// It is not known how many it will be of what.
			return shape, false
		case ptr.Deref(exactly.AdminAccess, false):
			// Takes nothing from anybody.
			return shape, false
		case shape.Class != "" && shape.Class != exactly.DeviceClassName:
			return shape, false
		}
		shape.Class = exactly.DeviceClassName
		shape.Count += int(exactly.Count)
	}
	shape.Constraint = constraint.Name
	// A single device is whole as long as it is free.
	return shape, 1 < shape.Count && shape.Count <= resourceapi.AllocationResultsMaxSize
}
