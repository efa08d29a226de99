// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setscores is how a cluster tells a hub how many more sets of devices fit in it: an
// AddOnPlacementScore called [Name] in the namespace of the cluster, with a score for each shape and
// [State]. The value of a score is on a scale ([Value]), the number itself is in the annotation
// [QuantitiesAnnotation].
package setscores

import (
	"math"
	"strconv"
	"strings"
)

const (
	// Name is the name of the AddOnPlacementScore.
	Name = "celset-sets"

	// QuantitiesAnnotation is the annotation of an AddOnPlacementScore that has the
	// quantities behind its values, a JSON object from score name to quantity.
	QuantitiesAnnotation = "celset.dev/quantities"

	// MaxDevices is the largest number of devices in a set, as for a claim.
	MaxDevices = 32
)

// State is when the sets would fit.
type State string

const (
	// Now is with the claims where they are.
	Now State = "now"
	// Packed is if the same claims had other devices, as far as was found.
	Packed State = "packed"
	// Idle is if no device was in use.
	Idle State = "idle"
)

// Key is what a score is about.
type Key struct {
	// Class is the name of a DeviceClass, Constraint that of a constraint which it defines. Neither
	// has a slash in it.
	Class, Constraint string
	// Devices is the number of devices in a set, from 1 to [MaxDevices].
	Devices int
	State   State
}

// String is the name of the score, such as "gpu.example.com/block8/8/now".
func (k Key) String() string { return k.Class + "/" + k.Constraint + "/" + k.rest() }

func (k Key) rest() string { return strconv.Itoa(k.Devices) + "/" + string(k.State) }

// Parse is the key of a name; false if it is not the name of any.
func Parse(name string) (Key, bool) {
	class, rest, _ := strings.Cut(name, "/")
	constraint, rest, _ := strings.Cut(rest, "/")
	devices, state, _ := strings.Cut(rest, "/")
	count, err := strconv.Atoi(devices)
	key := Key{Class: class, Constraint: constraint, Devices: count, State: State(state)}
	isKnown := key.State == Now || key.State == Packed || key.State == Idle
	// One key has one name: not also "+8", or "08".
	if err != nil || class == "" || constraint == "" || count < 1 || count > MaxDevices || !isKnown || key.rest() != rest {
		return Key{}, false
	}
	return key, true
}

const (
	// none is the value for no set. A prioritizer takes a score that is missing for 0: a cluster that
	// does not say how many sets it has is better than one that has none, and worse than one that has one.
	none = -100
	// exact is up to how many sets the value is their number.
	exact = 50
	// perDoubling is how much twice as many sets add to it.
	perDoubling = 5
	most        = 100
)

// Value is the value of a score for a number of sets: -100 for none, the number itself up to 50, and
// 5 more for each doubling, rounded down, up to 100 for 51,200 and more. More sets never have a smaller
// value. A negative number is none.
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
