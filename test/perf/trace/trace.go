// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"math"
	"math/rand/v2"
	"slices"
)

// share is the share of claims that want so many devices.
type share struct {
	devices int
	of      float64
}

// span is a range of the decimal logarithm of minutes, of a share of claims.
type span struct {
	from, to, of float64
}

// Gavel's simulator (Narayanan et al., OSDI 2020) has these stand for the jobs of Philly, Microsoft's
// cluster (Jeon et al., ATC 2019): most want one device, and few of them take most of the time.
var (
	shares    = []share{{1, 0.70}, {2, 0.10}, {4, 0.15}, {8, 0.05}}
	durations = []span{{1.5, 3, 0.8}, {3, 4, 0.2}}
)

// Claim is one of a trace. Times are in minutes.
type Claim struct {
	Arrival, Duration float64
	Devices           int
}

// Trace is claims in the order in which they arrive.
type Trace struct {
	Claims []Claim
	// End is when the last has arrived.
	End float64
}

// New has as many claims as wanted, whose device time is the given share of that of the devices until
// the end. It depends on nothing but its parameters. Arrivals are a Poisson process under the condition
// that there are so many.
func New(claims, devices int, load float64, seed uint64) *Trace {
	source := rand.New(rand.NewPCG(seed, uint64(claims)))
	t := &Trace{Claims: make([]Claim, claims)}
	var demand float64
	for i := range t.Claims {
		c := &t.Claims[i]
		c.Devices, c.Duration = wanted(source.Float64()), duration(source)
		demand += float64(c.Devices) * c.Duration
	}
	t.End = rounded(demand / load / float64(devices))
	arrivals := make([]float64, claims)
	for i := range arrivals {
		arrivals[i] = rounded(t.End * source.Float64())
	}
	slices.Sort(arrivals)
	for i := range t.Claims {
		t.Claims[i].Arrival = arrivals[i]
	}
	return t
}

func wanted(at float64) int {
	for _, s := range shares {
		if at -= s.of; at < 0 {
			return s.devices
		}
	}
	return shares[len(shares)-1].devices
}

func duration(source *rand.Rand) float64 {
	at := source.Float64()
	var s span
	for _, s = range durations {
		if at -= s.of; at < 0 {
			break
		}
	}
	return rounded(math.Pow(10, s.from+(s.to-s.from)*source.Float64()))
}

// rounded is to a thousandth, so that all processors come to the same.
func rounded(minutes float64) float64 { return math.Round(1000*minutes) / 1000 }
