// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
)

// bruteForce returns the first set of free devices with the shape. It tries all sets in the allocator's order.
func bruteForce(s Scenario, free Set) Set {
	return bruteForceRequests(s, s.Requests, free, 0)
}

func bruteForceRequests(s Scenario, requests []Request, free, chosen Set) Set {
	if len(requests) == 0 {
		if s.Holds(s.Names(chosen)) {
			return chosen
		}
		return 0
	}
	r := requests[0]
	return combinations(free&s.OfDriver(r.Driver), r.Count, chosen, func(chosen Set) Set {
		return bruteForceRequests(s, requests[1:], free, chosen)
	})
}

// combinations extends chosen by count devices of from, in every way and in ascending order. It stops when try returns a set.
func combinations(from Set, count int, chosen Set, try func(Set) Set) Set {
	if count == 0 {
		return try(chosen)
	}
	for ; from.Len() >= count; from &= from - 1 {
		if found := combinations(from&(from-1), count-1, chosen|from&-from, try); found != 0 {
			return found
		}
	}
	return 0
}

// TestHandWrittenAgainstBruteForce compares the hand-written search with brute force, on random free devices. If there would be
// too many sets, only few devices are free: a set with the shape and some other devices.
func TestHandWrittenAgainstBruteForce(t *testing.T) {
	for _, s := range Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			most := s.Wanted() + 4
			cases.Check(t, func(t *rapid.T) {
				free := Set(rapid.Uint64().Draw(t, "free")) & s.All()
				if rapid.Bool().Draw(t, "with an answer") {
					free |= Set(rapid.Uint64().Draw(t, "more")) & s.All()
				}
				if free.Len() > most {
					answer, _ := s.HandWritten(free)
					others := thinned(t, free&^answer, most-answer.Len())
					free = answer | others
				}
				set, steps := s.HandWritten(free)
				if expected := bruteForce(s, free); set != expected {
					t.Fatalf("free %v: found %v, expected %v", s.Names(free), s.Names(set), s.Names(expected))
				}
				if steps < 1 || set != 0 && steps <= set.Len() {
					t.Fatalf("%d steps for %d devices", steps, set.Len())
				}
			})
		})
	}
}

// thinned returns at most count devices of a set.
func thinned(t *rapid.T, set Set, count int) Set {
	for set.Len() > count {
		at := rapid.IntRange(0, set.Len()-1).Draw(t, "leave out")
		for i := range set.All() {
			if at == 0 {
				set &^= bit(i)
			}
			at--
		}
	}
	return set
}

// TestHandWrittenHolds uses more free devices than brute force can handle. It checks that found sets are free and have the
// shape. If fewer other devices are free, the same set must be found.
func TestHandWrittenHolds(t *testing.T) {
	for _, s := range Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			cases.Check(t, func(t *rapid.T) {
				free := s.All() &^ Set(rapid.Uint64().Draw(t, "in use")&rapid.Uint64().Draw(t, "and"))
				set, _ := s.HandWritten(free)
				if set == 0 {
					return
				}
				if set&^free != 0 || !s.Holds(s.Names(set)) {
					t.Fatalf("free %v: found %v", s.Names(free), s.Names(set))
				}
				less := free &^ (Set(rapid.Uint64().Draw(t, "also in use")) &^ set)
				if again, _ := s.HandWritten(less); again != set {
					t.Fatalf("free %v: found %v, and %v of a part of it", s.Names(free), s.Names(set), s.Names(again))
				}
			})
		})
	}
}

// TestExpressionsMeanTheShape checks that the two definitions of each shape, by expression and by wiring, agree. It compares
// them for sets with the shape, for sets that almost have it, and for other sets.
func TestExpressionsMeanTheShape(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	for _, s := range Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			expression, err := environment.Compile(t.Context(), s.Expression)
			require.NoError(t, err)
			values := valuesOf(t, s)
			cases.Check(t, func(t *rapid.T) {
				set := drawSet(t, s)
				var devices []*device.Device
				for i := range set.All() {
					devices = append(devices, values[i])
				}
				satisfied, err := expression.Satisfied(t.Context(), devices, cel.NewBudget(1<<40))
				if err != nil {
					t.Fatal(err)
				}
				if holds := s.Holds(s.Names(set)); satisfied != holds {
					t.Fatalf("%v: the expression says %v, the wiring %v", s.Names(set), satisfied, holds)
				}
			})
		})
	}
}

// valuesOf returns the devices of a scenario as CEL values, in the order of the topology.
func valuesOf(t *testing.T, s Scenario) []*device.Device {
	slices, err := s.ResourceSlices("node-1")
	require.NoError(t, err)
	var values []*device.Device
	for _, slice := range slices {
		for i := range slice.Spec.Devices {
			require.Equal(t, s.Topology.Devices[len(values)].Name, slice.Spec.Devices[i].Name)
			values = append(values, device.New(slice.Spec.Driver, &slice.Spec.Devices[i]))
		}
	}
	return values
}

// drawSet generates a set of the requested size: a set with the shape, after up to two devices were replaced by devices of the
// same driver.
func drawSet(t *rapid.T, s Scenario) Set {
	set, _ := s.HandWritten(s.All() &^ Set(rapid.Uint64().Draw(t, "in use")&rapid.Uint64().Draw(t, "and")&rapid.Uint64().Draw(t, "and")))
	if set == 0 {
		set, _ = s.HandWritten(s.All())
	}
	for range rapid.IntRange(0, 2).Draw(t, "replaced") {
		r := rapid.SampledFrom(s.Requests).Draw(t, "request")
		ours := s.OfDriver(r.Driver)
		set &^= thinned(t, set&ours, 1)
		set |= thinned(t, ours&^set, 1)
	}
	return set
}
