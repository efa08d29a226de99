// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Mix is who asks for how much, and for how long.
type Mix struct {
	Name string
	// Shares has for each size the share of claims that want so many devices. They add up to 1.
	Shares []Share
	// Durations are ranges of the logarithm of a duration, in minutes, to the base 10.
	Durations []Range
}

// Share is the share of claims that want Devices.
type Share struct {
	Devices int
	Of      float64
}

// Range is that of the decimal logarithm of minutes, of a share of claims.
type Range struct {
	From, To, Of float64
}

// Both mixes are those with which simulators of published schedulers stand for the jobs of Philly,
// Microsoft's cluster (Jeon et al., ATC 2019): most want one device, and few of them take most of
// the time. Without those for 16, which no node here has.
var (
	// Gavel's (Narayanan et al., OSDI 2020).
	few = Mix{
		Name:      "few for eight",
		Shares:    []Share{{1, 0.70}, {2, 0.10}, {4, 0.15}, {8, 0.05}},
		Durations: []Range{{1.5, 3, 0.8}, {3, 4, 0.2}},
	}
	// ElasticFlow's (Gu et al., ASPLOS 2023).
	many = Mix{
		Name:      "one or eight",
		Shares:    []Share{{1, 0.84}, {2, 0.03}, {4, 0.03}, {8, 0.10}},
		Durations: []Range{{1, 3, 0.95}, {3, 4, 0.05}},
	}
)

// Mixes are those that are replayed.
func Mixes() []Mix { return []Mix{few, many} }

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

// NewTrace has as many claims as wanted, whose device time is the given share of that of the
// devices until the end. It depends on nothing but its parameters. Arrivals are a Poisson process
// under the condition that there are so many.
func NewTrace(mix Mix, claims, devices int, load float64, seed uint64) Trace {
	source := rand.New(rand.NewPCG(seed, uint64(claims)))
	t := Trace{Claims: make([]Claim, claims)}
	var demand float64
	for i := range t.Claims {
		c := &t.Claims[i]
		c.Devices, c.Duration = mix.devices(source.Float64()), mix.duration(source)
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

func (m Mix) devices(at float64) int {
	for _, share := range m.Shares {
		if at -= share.Of; at < 0 {
			return share.Devices
		}
	}
	return m.Shares[len(m.Shares)-1].Devices
}

func (m Mix) duration(source *rand.Rand) float64 {
	at := source.Float64()
	var r Range
	for _, r = range m.Durations {
		if at -= r.Of; at < 0 {
			break
		}
	}
	return rounded(math.Pow(10, r.From+(r.To-r.From)*source.Float64()))
}

// rounded is to a thousandth, so that all processors come to the same.
func rounded(minutes float64) float64 { return math.Round(1000*minutes) / 1000 }

// String describes the mix: "1: 70 %, 8: 5 %".
func (m Mix) String() string {
	var text string
	for i, share := range m.Shares {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%d: %.0f %%", share.Devices, 100*share.Of)
	}
	return text
}
