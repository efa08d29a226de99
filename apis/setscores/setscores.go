// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setscores defines how a cluster reports to a hub how many more sets of devices fit in the cluster. The report is an
// AddOnPlacementScore with the name [Name] in the namespace of the cluster. It has a score for each set shape and [State]. The
// value of a score is on a scale ([Value]). The annotation [QuantitiesAnnotation] has the number itself.
package setscores

import (
	"math"
	"strconv"
	"strings"
)

const (
	// Name is the name of the AddOnPlacementScore.
	Name = "celset-sets"

	// QuantitiesAnnotation is the annotation of an AddOnPlacementScore with the quantities behind its values. It is a JSON object
	// from score name to quantity.
	QuantitiesAnnotation = "celset.dev/quantities"

	// MaxDevices is the largest number of devices in a set, as for a claim.
	MaxDevices = 32
)

// State is the condition under which the sets are counted.
type State string

const (
	// Now counts the sets that fit beside the current allocations.
	Now State = "now"
	// Packed counts the sets that would fit if the same claims had other devices. It is a lower bound: the best packing found.
	Packed State = "packed"
	// Idle counts the sets that would fit if no device were in use.
	Idle State = "idle"
)

// Key identifies a score.
type Key struct {
	// Class is the name of a DeviceClass. Constraint is the name of a constraint that the class defines. Neither contains a slash.
	Class, Constraint string
	// Devices is the number of devices in a set, from 1 to [MaxDevices].
	Devices int
	State   State
}

// String returns the name of the score, such as "gpu.example.com/block8/8/now".
func (k Key) String() string { return k.Class + "/" + k.Constraint + "/" + k.rest() }

func (k Key) rest() string { return strconv.Itoa(k.Devices) + "/" + string(k.State) }

// Parse returns the key of a score name. It returns false if the name does not belong to a key.
func Parse(name string) (Key, bool) {
	class, rest, _ := strings.Cut(name, "/")
	constraint, rest, _ := strings.Cut(rest, "/")
	devices, state, _ := strings.Cut(rest, "/")
	count, err := strconv.Atoi(devices)
	key := Key{Class: class, Constraint: constraint, Devices: count, State: State(state)}
	isKnown := key.State == Now || key.State == Packed || key.State == Idle
	// Each key has exactly one name: neither "+8" nor "08" is valid.
	if err != nil || class == "" || constraint == "" || count < 1 || count > MaxDevices || !isKnown || key.rest() != rest {
		return Key{}, false
	}
	return key, true
}

const (
	// none is the value if no set fits. A prioritizer treats a missing score as 0. So a cluster without a score ranks above a
	// cluster with no set, and below a cluster with one set.
	none = -100
	// exact is the largest number of sets that equals its value.
	exact = 50
	// perDoubling is the increase of the value for twice as many sets.
	perDoubling = 5
	most        = 100
)

// Value returns the value of a score for a number of sets. It is -100 for no sets, and the number itself up to 50. Above 50 it
// grows by 5 for each doubling, rounded down, up to 100 for 51,200 sets and more. More sets never have a smaller value. A
// negative number counts as no sets.
func Value(sets int) int32 {
	switch {
	case sets <= 0:
		return none
	case sets <= exact:
		return int32(sets)
	default:
		return int32(min(most, exact+math.Floor(perDoubling*math.Log2(float64(sets)/exact))))
	}
}
