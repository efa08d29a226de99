// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shape is the table of set constraints that the search is measured
// with: hardware scenarios, each with its devices, its claim, the expression in
// CEL, and a search for this one shape that was written by hand, which is the
// limit for any search that starts from an expression. Package corpus has many more
// expressions, over nodes that are small enough to try all sets of; this one has a few
// shapes, of which each is measured in full.
//
//	for _, s := range shape.Scenarios() {
//		for _, occupancy := range s.Occupancies {
//			set, steps := s.HandWritten(s.All() &^ occupancy.InUse)
//			...                                  // what an allocator should answer
//			s.Holds(s.Names(set))                // true, or set is empty
//		}
//	}
//
// [Scenario.Claim], [Scenario.ResourceSlices] and [Scenario.DeviceClasses] give
// what an allocator is asked with. [Scenario.Variants] fills many nodes, no two
// alike.
//
// # The searches written by hand
//
// They work on words of 64 bits, a bit a device, and choose one device after the
// other in ascending order; after each choice they drop what can't be part of an
// answer any more (forward checking). So they return the same set as an exhaustive
// search in the allocator's order: the one that comes first when sets are compared
// as ascending lists of devices. They know the wiring, and allocate nothing.
//
// A step is a device tried, whether it was a choice or followed from one, and one
// more for the start. Steps don't depend on the machine, which makes them the
// measure that tests pin.
//
// None of them is a formula. A full rectangle, for example, could be found without
// any search by eroding the free devices with shifts; a formula has no steps to
// compare with.
package shape

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/wiring"
	"github.com/celset/celset/internal/topology"
)

// Scenario is one shape on one kind of hardware.
type Scenario struct {
	// Name is short and fit for the name of a benchmark: "grid-8x8-4".
	Name string
	// Topology has at most 64 devices.
	Topology topology.Topology
	// Requests are those of the claim, in order. The devices of a request are of
	// one driver, and no two requests are for the same driver.
	Requests []Request
	// Expression is true for the sets that have the shape, in CEL.
	Expression string
	// Occupancies are in the order of [OccupancyNames]. Where one can't exist it is left
	// out: of 16 devices 16 are either all free, or too few are.
	Occupancies []Occupancy

	// holds judges a set that has as many devices as were requested.
	holds func(topology.Topology, []string) bool
	// search returns the first set of free devices that has the shape, an empty one
	// if there is none, and its steps.
	search func(free Set) (Set, int)
}

// Request is a request of a claim.
type Request struct {
	Name string
	// Driver is also the name of the device class.
	Driver string
	Count  int
}

// All is the set of all devices.
func (s Scenario) All() Set { return first(len(s.Topology.Devices)) }

// Wanted is the number of devices in an answer.
func (s Scenario) Wanted() int {
	wanted := 0
	for _, r := range s.Requests {
		wanted += r.Count
	}
	return wanted
}

// OfDriver is the set of the devices of a driver.
func (s Scenario) OfDriver(driver string) Set {
	var set Set
	for i, d := range s.Topology.Devices {
		if d.Driver == driver {
			set |= bit(i)
		}
	}
	return set
}

// Enough tells whether each request finds as many free devices as it wants.
func (s Scenario) Enough(free Set) bool {
	return !slices.ContainsFunc(s.Requests, func(r Request) bool {
		return (free & s.OfDriver(r.Driver)).Len() < r.Count
	})
}

// Names are the names of the devices of a set, in ascending order of devices.
func (s Scenario) Names(set Set) []string {
	names := make([]string, 0, set.Len())
	for i := range set.All() {
		names = append(names, s.Topology.Devices[i].Name)
	}
	return names
}

// Holds tells whether the named devices are as many as were requested and have
// the shape. It judges by the wiring of the topology and not by the expression.
func (s Scenario) Holds(names []string) bool {
	devices, err := s.Topology.Select(names)
	if err != nil {
		return false
	}
	count := make(map[string]int, len(s.Requests))
	for _, d := range devices {
		count[d.Driver]++
	}
	for _, r := range s.Requests {
		if count[r.Driver] != r.Count {
			return false
		}
	}
	return len(devices) == s.Wanted() && s.holds(s.Topology, names)
}

// HandWritten returns the first set of free devices that has the shape, and the
// steps that the search for it took. The set is empty if there is none.
func (s Scenario) HandWritten(free Set) (Set, int) { return s.search(free) }

// everyHasTwoNeighbours tells whether each device of the set is linked to at least
// two others of it.
func everyHasTwoNeighbours(t topology.Topology, names []string) bool {
	devices, err := t.Select(names)
	if err != nil {
		return false
	}
	inSet := make(map[string]bool, len(names))
	for _, name := range names {
		inSet[name] = true
	}
	return !slices.ContainsFunc(devices, func(d topology.Device) bool {
		linked := 0
		for _, neighbor := range d.Neighbors {
			if inSet[neighbor] {
				linked++
			}
		}
		return linked < 2
	})
}

// contiguousWithoutWrap tells whether the set is a stretch of a ring that does not
// reach over the place where the ring closes.
func contiguousWithoutWrap(t topology.Topology, names []string) bool {
	last := len(t.Devices) - 1
	wraps := slices.Contains(names, t.Devices[0].Name) && slices.Contains(names, t.Devices[last].Name)
	return wiring.Contiguous(t, names) && (!wraps || len(names) == len(t.Devices))
}

// constraintName is the name under which a claim defines its expression.
const constraintName = "shape"

// Claim asks for the devices of the scenario, with its expression as a constraint
// on all of them.
func (s Scenario) Claim() (*resourceapi.ResourceClaim, error) {
	return s.ClaimWith(s.Expression)
}

// ClaimWith is Claim with another expression in the place of the scenario's.
func (s Scenario) ClaimWith(expression string) (*resourceapi.ResourceClaim, error) {
	raw, err := json.Marshal(v1alpha1.CELDeviceConstraint{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind},
		Name:       constraintName,
		Expression: expression,
	})
	if err != nil {
		return nil, fmt.Errorf("scenario %s: constraint: %w", s.Name, err)
	}
	claim := s.PlainClaim()
	claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{
		MatchAttribute: new(resourceapi.FullyQualifiedName(v1alpha1.AttributeDomain + "/" + constraintName)),
	}}
	claim.Spec.Devices.Config = []resourceapi.DeviceClaimConfiguration{{
		DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
			Driver:     v1alpha1.DriverName,
			Parameters: runtime.RawExtension{Raw: raw},
		}},
	}}
	return claim, nil
}

// PlainClaim has the requests of the scenario and no constraint.
func (s Scenario) PlainClaim() *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: s.Name}}
	for _, r := range s.Requests {
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourceapi.DeviceRequest{
			Name: r.Name,
			Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: r.Driver,
				AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
				Count:           int64(r.Count),
			},
		})
	}
	return claim
}

// DeviceClasses has a class for each driver, of the same name.
func (s Scenario) DeviceClasses() []*resourceapi.DeviceClass {
	var classes []*resourceapi.DeviceClass
	for _, driver := range s.Topology.Drivers() {
		classes = append(classes, &resourceapi.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: driver},
			Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{
				{CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == '%s'", driver)}},
			}},
		})
	}
	return classes
}

// ResourceSlices is what the drivers publish on a node. The pools are named like
// the node.
func (s Scenario) ResourceSlices(nodeName string) ([]*resourceapi.ResourceSlice, error) {
	return s.Topology.ResourceSlices(nodeName)
}

// Occupancy is which devices of a scenario are in use before its claim comes.
type Occupancy struct {
	Name  string
	InUse Set
}

// The occupancies.
const (
	// Empty has no device in use.
	Empty = "empty"
	// Free70 has 70 % of the devices free, picked at random once and for all.
	Free70 = "70-free"
	// HalfFree has half of them free, picked likewise.
	HalfFree = "half-free"
	// Adversarial has an answer, but late in the order and behind many sets that
	// nearly are one.
	Adversarial = "adversarial"
	// Unsatisfiable has enough free devices for the claim, and no answer.
	Unsatisfiable = "unsatisfiable"
)

// OccupancyNames lists the occupancies in the order in which scenarios have them.
var OccupancyNames = []string{Empty, Free70, HalfFree, Adversarial, Unsatisfiable}

// occupancies makes those of n devices. The last two depend on the shape and are given
// as pictures, empty where there is none.
func occupancies(n int, adversarial, unsatisfiable string) []Occupancy {
	result := []Occupancy{
		{Empty, 0},
		{Free70, shuffled(n, n-(n*7+5)/10)},
		{HalfFree, shuffled(n, n/2)},
	}
	if adversarial != "" {
		result = append(result, Occupancy{Adversarial, Drawn(adversarial)})
	}
	if unsatisfiable != "" {
		result = append(result, Occupancy{Unsatisfiable, Drawn(unsatisfiable)})
	}
	return result
}

// Drawn reads a picture: a sign for each device in their order, x for one in use
// and . for a free one. Blanks and line breaks are for the eye.
func Drawn(picture string) Set {
	var inUse Set
	i := 0
	for _, sign := range picture {
		switch sign {
		case 'x':
			inUse |= bit(i)
			i++
		case '.':
			i++
		}
	}
	return inUse
}

// shuffled are count of n devices, the same in every run.
func shuffled(n, count int) Set {
	return pick(random(n), first(n), count)
}

// random returns a source of random numbers that repeats itself in every run.
func random(n int) *rand.Rand {
	return rand.New(rand.NewPCG(0x5ca1ab1e, uint64(n)))
}

// pick returns count devices of a set.
func pick(r *rand.Rand, from Set, count int) Set {
	var devices []int
	for i := range from.All() {
		devices = append(devices, i)
	}
	var picked Set
	for _, at := range r.Perm(len(devices))[:count] {
		picked |= bit(devices[at])
	}
	return picked
}
