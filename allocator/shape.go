// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/bits"
	"slices"
	"sync"
	"weak"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/availability"
	"github.com/celset/celset/allocator/internal/freesets"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device/bitset"
)

// Shape is a set of devices that somebody may ask for: so many devices of a class that satisfy a
// constraint which the class defines. It is comparable.
type Shape struct {
	// Class is the name of a DeviceClass.
	Class string `json:"class"`
	// Constraint is the name of a CEL device constraint that the class defines.
	Constraint string `json:"constraint"`
	// Count is the number of devices, at least 1.
	Count int `json:"count"`
}

// MaxShapes is how many shapes of those that are known are looked at.
const MaxShapes = 16

// unaskedCounts are looked at as long as it is not known what is asked for.
var unaskedCounts = []int{16, 8, 4, 2}

// On nodes of at most so many devices all sets of a shape are counted. Of larger ones it is a sample,
// since each device is part of many.
const (
	exactDevices = 16
	thinnedSets  = 512
)

// What is found out about a shape takes at most so many steps and so much cost, once for each kind
// of hardware. Sets that are not found by then are not counted. It is a part of what an attempt may
// spend on preferences by default, so that each attempt finds out something that is kept.
const (
	shapeSteps = 10_000
	shapeCost  = 500_000
)

// shapes has the sets of shapes on nodes of which nothing is in use.
type shapes struct {
	allocator *Allocator
	// idle is the allocator that looks for them, made when it is needed.
	idle func() *Allocator
	// claims has a claim for each shape, so that it is the same object each time.
	claims sync.Map // Shape -> *resourceapi.ResourceClaim
}

func newShapes(a *Allocator) *shapes {
	return &shapes{allocator: a, idle: sync.OnceValue(func() *Allocator { return newIdle(a) })}
}

// newIdle is the allocator for a cluster in which nothing is in use and nobody prefers anything.
func newIdle(a *Allocator) *Allocator {
	idle := a.in(availability.NewState(AllocatedTo(nil, a.features)))
	idle.resolvedClaims = &resolvedClaims{}
	idle.preferences, idle.reasons, idle.unbounded = false, false, false
	idle.costBudget, idle.stepBudget, idle.attempt = shapeCost, shapeSteps, a.attempt.forPreferences()
	return idle
}

// claimFor is a claim for the shape.
func (h *shapes) claimFor(shape Shape) *resourceapi.ResourceClaim {
	if known, ok := h.claims.Load(shape); ok {
		return known.(*resourceapi.ResourceClaim)
	}
	made, _ := h.claims.LoadOrStore(shape, &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: shape.Constraint},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{Name: "devices", Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: shape.Class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(shape.Count),
			}}},
			Constraints: []resourceapi.DeviceConstraint{{
				MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(v1alpha1.AttributeDomain + "/" + shape.Constraint)),
			}},
		}},
	})
	return made.(*resourceapi.ResourceClaim)
}

// of are the shapes that matter to a claim for devices of the classes, most important first: those
// that were asked for, whatever their classes are, since other classes may have the same devices;
// and for constraints of its own classes for which nobody has asked yet the usual counts.
func (h *shapes) of(classes sets.Set[string]) []Shape {
	all := slices.Clone(h.allocator.asked[:min(len(h.allocator.asked), MaxShapes)])
	for _, count := range unaskedCounts {
		for _, class := range sets.List(classes) {
			for _, constraint := range h.definedBy(class) {
				isOf := func(s Shape) bool { return s.Class == class && s.Constraint == constraint }
				if len(all) < MaxShapes && !slices.ContainsFunc(h.allocator.asked, isOf) {
					all = append(all, Shape{class, constraint, count})
				}
			}
		}
	}
	return all
}

// definedBy are the names of the constraints that a class defines.
func (h *shapes) definedBy(className string) []string {
	class, err := h.allocator.classes.Get(className)
	if err != nil {
		return nil
	}
	// Of a class with mistakes in it, those that have none.
	definitions, _ := v1alpha1.ClassDefinitions(class)
	names := make([]string, len(definitions))
	for i := range definitions {
		names[i] = definitions[i].Name
	}
	return names
}

// setsOn are the sets of a shape on the node of a search whose view has what the shape reads, as far
// as they were found. The error is that the context or the attempt has ended, or that of an
// attempt's budget.
func (h *shapes) setsOn(s *search, shape Shape) (*freesets.Sets, error) {
	idle, claim := h.idle(), h.claimFor(shape)
	list := func() (*freesets.Sets, error) {
		return listSets(s.ctx, idle.planFor([]*resourceapi.ResourceClaim{claim}).onIdle(s.node, s.inventory))
	}
	content, ok := idle.resolved(claim).fingerprint()
	if !ok || s.inventory.DevicesSelectNodes() {
		return list()
	}
	by := shapeFeatures{features: s.allocator.features, environment: s.allocator.environment}
	if !s.inventory.IsPlain {
		by.devices = weak.Make(s.inventory)
	}
	key := tableKey{view: s.viewID(), kind: tableOfSets, by: by, text: content}
	found, _, err := find(s.ctx, idle.cache.tables.At(key), func() (weighed, error) {
		sets, err := list()
		if err != nil {
			return weighed{}, err
		}
		return weighed{value: sets, bytes: sets.Bytes()}, nil
	})
	sets, _ := found.value.(*freesets.Sets)
	return sets, err
}

// onIdle is a plan on a node of which nothing is in use.
func (p *plan) onIdle(node *v1.Node, has *inventory.Inventory) onNode {
	return onNode{p, node, has, bitset.New(len(has.Candidates))}
}

// listSets looks for all sets that the claims could get. An expression that fails ends it, as does
// the budget: what others may ask for keeps nobody from being served.
func listSets(ctx context.Context, on onNode) (*freesets.Sets, error) {
	result, devices := &freesets.Sets{}, len(on.inventory.Candidates)
	s, err := newSearch(ctx, on, nil)
	if err == nil {
		s.tellsApart, result.All = true, true
		var positions []int
		for found := range s.solutions() {
			positions = positions[:0]
			for _, c := range found.choices {
				positions = append(positions, c.Position)
			}
			result.Add(positions, devices)
			if result.Len() == freesets.MaxSets {
				result.All = false
				break
			}
		}
		err = s.err
		result.All = result.All && err == nil
		s.work.charge()
		if ended := s.work.Cancelled(); ended != nil {
			return nil, ended
		}
	}
	if over, is := errors.AsType[*BudgetError](err); is && over.Attempt {
		return nil, err
	}
	if devices > exactDevices {
		return result.Thin(thinnedSets), nil
	}
	return result, nil
}

// MaxShapesOfClaim bounds what one claim says about what others may ask for.
const MaxShapesOfClaim = 4

// MaxShapesOfClass is how many shapes of one class are worth knowing.
const MaxShapesOfClass = 8

// AskedFrequency tells how often a shape was asked for, about: its order of magnitude. With each
// change of what is asked for most an allocator begins to find out anew what it knows, so that one
// claim more should not matter.
func AskedFrequency(count int) int { return bits.Len(uint(count)) }

// MostAsked are the shapes that were asked for most, of those that were asked for as often as is
// said: the most frequent first, and of those with the same [AskedFrequency] the largest. At most
// [MaxShapesOfClass] are of one class. It is what [WithShapes] takes.
func MostAsked(counts map[Shape]int) []Shape {
	order := func(s, o Shape) int {
		return cmp.Or(cmp.Compare(AskedFrequency(counts[o]), AskedFrequency(counts[s])), cmp.Compare(o.Count, s.Count),
			cmp.Compare(s.Class, o.Class), cmp.Compare(s.Constraint, o.Constraint))
	}
	ofClass := map[string]int{}
	most := slices.SortedFunc(maps.Keys(counts), order)
	return slices.DeleteFunc(most, func(s Shape) bool {
		ofClass[s.Class]++
		return ofClass[s.Class] > MaxShapesOfClass
	})
}

// ShapesOf are the shapes that a claim asks for: the sets that it wants to satisfy constraints which
// its classes define, with a reference or by default. A claim that defines a constraint itself asks
// for what others won't, and so does one that wants devices of several classes together, or does not
// say how many.
func ShapesOf(claim *resourceapi.ResourceClaim, classes v1alpha1.ClassGetter) []Shape {
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
	var shapes []Shape
	for i := range constraints {
		shape, ok := shapeOf(claim, &constraints[i])
		if ok && !slices.Contains(shapes, shape) && len(shapes) < MaxShapesOfClaim {
			shapes = append(shapes, shape)
		}
	}
	return shapes
}

// shapeOf is the set that a constraint of a class is about, if it is of so many devices of one
// class.
func shapeOf(claim *resourceapi.ResourceClaim, constraint *v1alpha1.Constraint) (shape Shape, ok bool) {
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

// UsualShapes are those of a constraint that nobody has asked for yet, most devices first.
func UsualShapes(class, constraint string) []Shape {
	shapes := make([]Shape, len(unaskedCounts))
	for i, count := range unaskedCounts {
		shapes[i] = Shape{class, constraint, count}
	}
	return shapes
}
