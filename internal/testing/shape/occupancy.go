// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import "math/rand/v2"

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
