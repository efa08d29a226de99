// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shape has the benchmarks of set constraints. A scenario has devices, a claim, a CEL expression, and a search for this
// one set shape, written by hand. No search that starts from an expression should need fewer steps than the hand-written
// search. Package corpus has many more expressions, for nodes so small that all sets can be tried. Package shape measures few
// set shapes thoroughly.
//
//	for _, s := range shape.Scenarios() {
//		for _, occupancy := range s.Occupancies {
//			set, steps := s.HandWritten(s.All() &^ occupancy.InUse)
//			...                                  // what an allocator should answer
//			s.Holds(s.Names(set))                // true, or set is empty
//		}
//	}
//
// [Scenario.Claim], [Scenario.ResourceSlices] and [Scenario.DeviceClasses] return the input of an allocator. [Scenario.Variants]
// returns different occupancies for many nodes.
//
// # Hand-written searches
//
// The searches use words of 64 bits, one bit per device. They choose devices in ascending order. After each choice, they
// exclude devices that no solution can contain (forward checking). So they find the same set as an exhaustive search in the
// allocator's order: the first set, if sets are compared as ascending lists of devices. They use the wiring and allocate no
// memory.
//
// Each device that is chosen or forced is a step, and the start is another step. The number of steps does not depend on the
// computer, so tests check it.
//
// Each solution is found by searching, not by a formula. A formula could find a full rectangle by eroding the free devices with
// shifts. But it would have no steps to compare with.
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

// Scenario is a set shape on a kind of hardware.
type Scenario struct {
	// Name is a short name for benchmarks, such as "grid-8x8-4".
	Name string
	// Topology has at most 64 devices.
	Topology topology.Topology
	// Requests are the requests of the claim, in order. Each request is for another driver.
	Requests []Request
	// Expression is a CEL expression that is true for exactly the sets with the shape.
	Expression string
	// Occupancies has the occupancies that can exist, in the order of [OccupancyNames]. For example, if a claim needs all 16
	// devices, either all devices are free or too few.
	Occupancies []Occupancy

	// holds reports whether a set of the requested size has the shape.
	holds func(topology.Topology, []string) bool
	// search returns the first set of free devices with the shape, or the empty set, and its number of steps.
	search func(free Set) (Set, int)
}

// Request is a request of a claim.
type Request struct {
	Name string
	// Driver is also the name of the device class.
	Driver string
	Count  int
}

// All returns the set of all devices.
func (s Scenario) All() Set { return first(len(s.Topology.Devices)) }

// Wanted returns the number of devices that the claim asks for.
func (s Scenario) Wanted() int {
	wanted := 0
	for _, r := range s.Requests {
		wanted += r.Count
	}
	return wanted
}

// OfDriver returns the set of the devices of a driver.
func (s Scenario) OfDriver(driver string) Set {
	var set Set
	for i, d := range s.Topology.Devices {
		if d.Driver == driver {
			set |= bit(i)
		}
	}
	return set
}

// Enough reports whether, for each request, enough devices of its driver are free.
func (s Scenario) Enough(free Set) bool {
	return !slices.ContainsFunc(s.Requests, func(r Request) bool {
		return (free & s.OfDriver(r.Driver)).Len() < r.Count
	})
}

// Names returns the names of the devices in a set, in ascending order of their indexes.
func (s Scenario) Names(set Set) []string {
	names := make([]string, 0, set.Len())
	for i := range set.All() {
		names = append(names, s.Topology.Devices[i].Name)
	}
	return names
}

// Holds reports whether the named devices match the requests and have the shape. It checks the wiring of the topology, not the
// expression.
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

// HandWritten returns the first set of free devices with the shape, or the empty set, and the number of steps of the search.
func (s Scenario) HandWritten(free Set) (Set, int) { return s.search(free) }

// everyHasTwoNeighbours reports whether each device of the set is linked to at least two devices of the set.
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

// contiguousWithoutWrap reports whether the set is a stretch of a ring that does not cross the ring's closing link.
func contiguousWithoutWrap(t topology.Topology, names []string) bool {
	last := len(t.Devices) - 1
	wraps := slices.Contains(names, t.Devices[0].Name) && slices.Contains(names, t.Devices[last].Name)
	return wiring.Contiguous(t, names) && (!wraps || len(names) == len(t.Devices))
}

// constraintName is the name of the constraint in the claims of scenarios.
const constraintName = "shape"

// Claim returns a claim for the devices of the scenario. Its constraint, on all devices, is the scenario's expression.
func (s Scenario) Claim() (*resourceapi.ResourceClaim, error) {
	return s.ClaimWith(s.Expression)
}

// ClaimWith returns the claim of the scenario with another expression.
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

// PlainClaim returns a claim with the requests of the scenario, but without a constraint.
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

// DeviceClasses returns a class for each driver. The class has the name of the driver.
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

// ResourceSlices returns the slices that the drivers publish on a node. The pools are named after the node.
func (s Scenario) ResourceSlices(nodeName string) ([]*resourceapi.ResourceSlice, error) {
	return s.Topology.ResourceSlices(nodeName)
}

// Occupancy is the set of devices in use before the claim.
type Occupancy struct {
	Name  string
	InUse Set
}

// The names of the occupancies.
const (
	// Empty means that no device is in use.
	Empty = "empty"
	// Free70 means that 70 % of the devices are free. They are chosen at random with a fixed seed.
	Free70 = "70-free"
	// HalfFree means that half of the devices are free. They are chosen at random with a fixed seed.
	HalfFree = "half-free"
	// Adversarial means that a set with the shape is free, but comes late in the order, after many sets that almost have the
	// shape.
	Adversarial = "adversarial"
	// Unsatisfiable means that enough devices are free for the claim, but no free set has the shape.
	Unsatisfiable = "unsatisfiable"
)

// OccupancyNames lists the names of all occupancies, in the order that scenarios use.
var OccupancyNames = []string{Empty, Free70, HalfFree, Adversarial, Unsatisfiable}

// occupancies returns the occupancies of n devices. The last two are given as pictures (see Drawn), because they depend on the
// shape. A picture is empty if the occupancy can't exist.
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

// Drawn parses a picture of the devices: x is a device in use, and . is a free device. Other characters are ignored. It returns
// the devices in use.
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

// shuffled returns count random devices of n. The result is the same in every run.
func shuffled(n, count int) Set {
	return pick(random(n), first(n), count)
}

// random returns a random source with a fixed seed.
func random(n int) *rand.Rand {
	return rand.New(rand.NewPCG(0x5ca1ab1e, uint64(n)))
}

// pick returns count random devices of a set.
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
