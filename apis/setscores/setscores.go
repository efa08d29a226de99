// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setscores defines how a cluster reports to a hub how many more sets of devices fit in the cluster. The report is an
// AddOnPlacementScore with the name [Name] in the cluster's namespace on the hub. It has a score for each set shape and
// [State]. The value of a score is on a scale ([Value]). The annotation [QuantitiesAnnotation] has the number of sets.
package setscores

import (
	"math"
	"strconv"
	"strings"
)

const (
	// Name is the name of the AddOnPlacementScore.
	Name = "celset-sets"

	// QuantitiesAnnotation is the annotation of an AddOnPlacementScore with the quantities behind its values: a JSON object
	// from score name to quantity.
	QuantitiesAnnotation = "celset.dev/quantities"

	// MaxDevices is the largest number of devices in a set, as for a claim.
	MaxDevices = 32
)

// State is the condition under which the sets are counted.
type State string

const (
	// Now counts the sets that fit in addition to the current allocations.
	Now State = "now"
	// Packed counts the sets that would fit if the same claims had other devices. It is a lower bound, from the best packing
	// found.
	Packed State = "packed"
	// Idle counts the sets that would fit if no device were in use.
	Idle State = "idle"
)

// Key identifies a score by its class, constraint, number of devices and state.
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

// Parse returns the key with the score name. It returns false if no key has this name.
func Parse(name string) (Key, bool) {
	class, rest, _ := strings.Cut(name, "/")
	constraint, rest, _ := strings.Cut(rest, "/")
	devices, state, _ := strings.Cut(rest, "/")
	count, err := strconv.Atoi(devices)
	key := Key{Class: class, Constraint: constraint, Devices: count, State: State(state)}
	isKnown := key.State == Now || key.State == Packed || key.State == Idle
	// Each key has exactly one name. So a count such as "+8" or "08" is not valid.
	if err != nil || class == "" || constraint == "" || count < 1 || count > MaxDevices || !isKnown || key.rest() != rest {
		return Key{}, false
	}
	return key, true
}

const (
	// none is the value for zero sets. A prioritizer treats a missing score as 0. So a cluster without a score ranks above a
	// cluster where no set fits, and below a cluster where one set fits.
	none = -100
	// exact is the largest number of sets that is its own value.
	exact = 50
	// perDoubling is the increase of the value for twice as many sets.
	perDoubling = 5
	most        = 100
)

// Value converts a number of sets to the value of a score. The value of 0 sets is -100. Up to 50, the value is the number
// itself. Above 50 it grows by 5 for each doubling, rounded down, up to 100 for 51,200 sets and more. More sets never have a
// smaller value. A negative number counts as 0.
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
