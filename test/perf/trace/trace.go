// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trace simulates a cluster where claims arrive and depart over time. It compares policies that choose a node and a set
// of devices for a claim: first fit, NVIDIA's best-effort policy, and celset's KeepWhole.
//
//	make trace > new.txt
//	benchstat -col /policy new.txt
//
// The results depend only on random seeds and not on the speed of the computer, so one run is enough.
//
// All nodes are equal, and a policy's choice on a node depends only on the free devices and the size of the claim. So each
// choice is computed once and cached.
package trace

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/celset/celset/internal/testing/shape"
)

// A share is a number of devices, and the fraction of all claims that request this number.
type share struct {
	devices int
	of      float64
}

// A span is a range of durations for a fraction of the claims, as decimal logarithms of minutes.
type span struct {
	from, to, of float64
}

// The numbers of devices and durations of claims, as in Gavel's simulator (Narayanan et al., OSDI 2020). It models the jobs of
// Microsoft's cluster Philly (Jeon et al., ATC 2019). Most jobs request one device, and a few jobs take most of the time.
var (
	shares    = []share{{1, 0.70}, {2, 0.10}, {4, 0.15}, {8, 0.05}}
	durations = []span{{1.5, 3, 0.8}, {3, 4, 0.2}}
)

// A Claim is a claim in a trace. Its times are in minutes.
type Claim struct {
	Arrival, Duration float64
	Devices           int
}

// A Trace is a list of claims in the order of their arrival.
type Trace struct {
	Claims []Claim
	// End is the end of the trace. All claims arrive before it.
	End float64
}

// New returns a trace with a number of claims. load is the fraction of the time of all devices that the claims request
// together. The same parameters give the same trace. Arrivals are a Poisson process with this number of claims.
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

// rounded rounds to a thousandth of a minute, so that the results are the same on all processors.
func rounded(minutes float64) float64 { return math.Round(1000*minutes) / 1000 }

// A choice is the set that a policy chooses on a node, or the empty set if none fits. values are the values of its preferences,
// the most important first. Larger values are better.
type choice struct {
	set    shape.Set
	values []int64
}

// A chooser chooses a set of size devices on a node, given the free devices of the node.
type chooser func(free shape.Set, size int) (choice, error)

// A policy places a claim on the node whose choice has the best values. If several nodes are equally good, it takes the first,
// unless anyNode is set.
type policy struct {
	name string
	// anyNode makes the policy choose randomly among equally good nodes, as kube-scheduler does.
	anyNode bool
	// chooses returns the function that chooses a set on a node. Nil means that all devices form one pool without nodes. This
	// pool is an upper bound: if a claim does not fit there, no policy can place it.
	chooses func(*Machine) (chooser, error)
}

// policies returns the policies to compare on a machine.
func policies(m *Machine) []policy {
	first := func(m *Machine) (chooser, error) { return m.asked() }
	keepWhole := func(m *Machine) (chooser, error) { return m.asked(m.keepWhole()...) }
	all := []policy{{"today", true, first}, {"first-fit", false, first}}
	if m.gpus != nil {
		all = append(all, policy{"best-effort", false, func(m *Machine) (chooser, error) { return m.bestEffort, nil }})
	}
	return append(all, policy{"KeepWhole", false, keepWhole}, policy{"KeepWhole-any-node", true, keepWhole}, policy{"pool", false, nil})
}

// chooser returns the policy's chooser with a cache of its choices.
func (p policy) chooser(m *Machine) (chooser, error) {
	if p.chooses == nil {
		return nil, nil
	}
	asked, err := p.chooses(m)
	if err != nil {
		return nil, err
	}
	known := map[int]map[shape.Set]choice{}
	for size := range m.sets {
		known[size] = map[shape.Set]choice{}
	}
	return func(free shape.Set, size int) (choice, error) {
		if c, ok := known[size][free]; ok {
			return c, nil
		}
		c, err := asked(free, size)
		if err == nil {
			known[size][free] = c
		}
		return c, err
	}, nil
}

// A cluster is a number of equal nodes, and a policy that chooses devices.
type cluster struct {
	machine *Machine
	devices int
	free    []shape.Set
	choose  chooser
	// chance chooses among equally good nodes. Nil means that the first node is chosen.
	chance *rand.Rand
}

func newCluster(m *Machine, nodes int, choose chooser) *cluster {
	return &cluster{machine: m, devices: nodes * m.all().Len(), free: slices.Repeat([]shape.Set{m.all()}, nodes), choose: choose}
}

// A placement is the node and the devices that a claim has.
type placement struct {
	node int
	set  shape.Set
}

// place chooses devices for a claim by the policy, and marks them as used. It returns false if no set fits on any node.
func (c *cluster) place(size int) (placement, bool, error) {
	if c.choose == nil {
		return placement{}, true, nil
	}
	chosen, best, equal := -1, choice{}, 0
	for node, free := range c.free {
		got, err := c.choose(free, size)
		if err != nil {
			return placement{}, false, err
		}
		if got.set == 0 {
			continue
		}
		order := 1
		if chosen >= 0 {
			order = slices.Compare(got.values, best.values)
		}
		switch {
		case order > 0:
			chosen, best, equal = node, got, 1
		case order == 0 && c.chance != nil:
			// With this probability for the equal-th node, all equally good nodes have the same probability in the end.
			if equal++; c.chance.IntN(equal) == 0 {
				chosen, best = node, got
			}
		}
	}
	if chosen < 0 {
		return placement{}, false, nil
	}
	// Whatever the policy is, the devices must be free and satisfy the constraint.
	if free := c.free[chosen]; free&best.set != best.set || !slices.Contains(c.machine.sets[size], best.set) {
		return placement{}, false, fmt.Errorf("%s, %d devices: of %b on node %d %b was chosen", c.machine.Name, size, free, chosen, best.set)
	}
	c.free[chosen] &^= best.set
	return placement{chosen, best.set}, true, nil
}

func (c *cluster) release(p placement) {
	if c.choose != nil {
		c.free[p.node] |= p.set
	}
}

// warmUp is the fraction of a trace, at the start, whose claims are not counted. Most devices are free during this time.
const warmUp = 0.2

// A Tally adds up the results of claims of one size.
type Tally struct {
	Claims int
	// AtOnce is the number of claims that got devices on arrival. Placed is the number of claims that got devices before the
	// end of the trace.
	AtOnce, Placed int
	// Waited is the sum of all waiting times, in minutes. A claim that never got devices waited until the end.
	Waited float64
}

// An Outcome is the result of a trace.
type Outcome struct {
	// Sizes maps the size of claims (number of devices) to their tally.
	Sizes map[int]*Tally
	// Stranded is the fraction of device time during which devices were idle although they were enough for a waiting claim.
	Stranded float64
}

// A replay is a running trace. It handles these events in order of time:
//
//  1. A claim arrives. It is tried at once, even if others wait, and waits if it does not fit.
//  2. A claim departs. Then waiting claims are tried in order of arrival. If one does not fit, later claims of its size are not
//     tried.
type replay struct {
	cluster *cluster
	trace   *Trace
	idle    int
	running departures
	// waiting holds the indices of the claims that wait, in the order of their arrival.
	waiting []int
	now     float64
	Outcome
}

// run simulates the trace on a cluster.
func run(c *cluster, t *Trace) (Outcome, error) {
	r := &replay{cluster: c, trace: t, idle: c.devices, Outcome: Outcome{Sizes: map[int]*Tally{}}}
	for i := range t.Claims {
		if err := r.departUntil(t.Claims[i].Arrival); err != nil {
			return Outcome{}, err
		}
		if err := r.arrive(i); err != nil {
			return Outcome{}, err
		}
	}
	if err := r.departUntil(t.End); err != nil {
		return Outcome{}, err
	}
	r.advance(t.End)
	for _, i := range r.waiting {
		r.tally(i).Waited += t.End - t.Claims[i].Arrival
	}
	r.Stranded /= float64(c.devices) * t.End * (1 - warmUp)
	return r.Outcome, nil
}

// tally returns the tally to which a claim is added. For a claim that arrives during the warm-up, the tally is discarded.
func (r *replay) tally(claim int) *Tally {
	c := r.trace.Claims[claim]
	if c.Arrival < warmUp*r.trace.End {
		return &Tally{}
	}
	if r.Sizes[c.Devices] == nil {
		r.Sizes[c.Devices] = &Tally{}
	}
	return r.Sizes[c.Devices]
}

func (r *replay) arrive(claim int) error {
	r.advance(r.trace.Claims[claim].Arrival)
	r.tally(claim).Claims++
	placed, err := r.try(claim)
	if !placed {
		r.waiting = append(r.waiting, claim)
	}
	return err
}

// try places the claim if a set fits, and reports whether it did.
func (r *replay) try(claim int) (bool, error) {
	c := r.trace.Claims[claim]
	if c.Devices > r.idle {
		return false, nil
	}
	got, placed, err := r.cluster.place(c.Devices)
	if !placed {
		return false, err
	}
	r.idle -= c.Devices
	heap.Push(&r.running, departure{r.now + c.Duration, claim, got})
	tally := r.tally(claim)
	tally.Placed++
	tally.Waited += r.now - c.Arrival
	if r.now == c.Arrival {
		tally.AtOnce++
	}
	return true, nil
}

// departUntil processes all departures until the time at.
func (r *replay) departUntil(at float64) error {
	for len(r.running) > 0 && r.running[0].at <= at {
		d := heap.Pop(&r.running).(departure)
		r.advance(d.at)
		r.idle += r.trace.Claims[d.claim].Devices
		r.cluster.release(d.placement)
		refused, waiting := map[int]bool{}, r.waiting[:0]
		for _, claim := range r.waiting {
			size := r.trace.Claims[claim].Devices
			if !refused[size] {
				placed, err := r.try(claim)
				if err != nil {
					return err
				}
				if placed {
					continue
				}
				refused[size] = true
			}
			waiting = append(waiting, claim)
		}
		r.waiting = waiting
	}
	return nil
}

// advance moves the clock to a time, and adds up the idle devices in between.
func (r *replay) advance(to float64) {
	if passed := to - max(r.now, warmUp*r.trace.End); passed > 0 {
		for _, claim := range r.waiting {
			if r.trace.Claims[claim].Devices <= r.idle {
				r.Stranded += passed * float64(r.idle)
				break
			}
		}
	}
	r.now = to
}

// A departure is the time at which a claim releases its devices.
type departure struct {
	at    float64
	claim int
	placement
}

// departures is a heap with the next departure first.
type departures []departure

func (d departures) Len() int { return len(d) }
func (d departures) Less(i, j int) bool {
	return d[i].at < d[j].at || d[i].at == d[j].at && d[i].claim < d[j].claim
}
func (d departures) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *departures) Push(x any)   { *d = append(*d, x.(departure)) }
func (d *departures) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}
