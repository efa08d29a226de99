// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trace replays claims that come and go against the allocator. It compares policies for choosing nodes and sets of
// devices: first fit, NVIDIA's best-effort policy, and KeepWhole.
//
//	make trace > new.txt
//	benchstat -col /policy new.txt
//
// Time is simulated. The counts depend only on seeds, not on the machine, so each row needs one run.
//
// Nodes of one kind are equal, and the choice on a node depends only on its free devices. So a policy is asked once for each set
// of free devices and each size of claims.
package trace

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/celset/celset/internal/testing/shape"
)

// A share is the share of claims that want a number of devices.
type share struct {
	devices int
	of      float64
}

// A span is a range of the decimal logarithm of minutes, for a share of claims.
type span struct {
	from, to, of float64
}

// The model of Gavel's simulator (Narayanan et al., OSDI 2020) for the jobs of Philly, Microsoft's cluster (Jeon et al., ATC
// 2019). Most jobs want one device, and a few jobs take most of the time.
var (
	shares    = []share{{1, 0.70}, {2, 0.10}, {4, 0.15}, {8, 0.05}}
	durations = []span{{1.5, 3, 0.8}, {3, 4, 0.2}}
)

// A Claim is a claim of a trace. Times are in minutes.
type Claim struct {
	Arrival, Duration float64
	Devices           int
}

// A Trace is a list of claims by arrival.
type Trace struct {
	Claims []Claim
	// End is the end of the trace. All claims arrive before it.
	End float64
}

// New returns a trace with a number of claims. Together they want the share load of the time of all devices until the end.
// The result depends only on the parameters. Arrivals are a Poisson process conditioned on the number of claims.
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

// rounded rounds to a thousandth, so that all processors compute the same.
func rounded(minutes float64) float64 { return math.Round(1000*minutes) / 1000 }

// A choice is the chosen set on a node, empty if none fits, and its values by preference. Greater values are better.
type choice struct {
	set    shape.Set
	values []int64
}

// A chooser chooses a set on a node with these free devices.
type chooser func(free shape.Set, size int) (choice, error)

// A policy places a claim on the node with the greatest values among the nodes where a set fits. The first of several equal nodes
// wins.
type policy struct {
	name string
	// anyNode selects randomly among equal nodes, as kube-scheduler does.
	anyNode bool
	// chooses returns the chooser for a node. Nil: all devices form one pool without nodes. This is a bound: no choice of nodes and
	// sets can place a claim that the pool can't.
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

// chooser returns the policy's chooser with a cache, because the choice depends only on the free devices and the size.
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

// A cluster is a set of equal nodes with a policy.
type cluster struct {
	machine *Machine
	devices int
	free    []shape.Set
	choose  chooser
	// chance decides between equal nodes. Nil: the first is taken.
	chance *rand.Rand
}

func newCluster(m *Machine, nodes int, choose chooser) *cluster {
	return &cluster{machine: m, devices: nodes * m.all().Len(), free: slices.Repeat([]shape.Set{m.all()}, nodes), choose: choose}
}

// A placement is the devices of a claim on a node.
type placement struct {
	node int
	set  shape.Set
}

// place takes the devices that the policy chooses for a claim. It reports false if no set fits on any node.
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
			// All equal nodes have the same probability.
			if equal++; c.chance.IntN(equal) == 0 {
				chosen, best = node, got
			}
		}
	}
	if chosen < 0 {
		return placement{}, false, nil
	}
	// Check the choice of every policy.
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

// warmUp is the share of a trace at the start that is not counted, because most devices are free then.
const warmUp = 0.2

// A Tally counts the results of claims of one size.
type Tally struct {
	Claims int
	// AtOnce counts claims that were placed on arrival. Placed counts claims that were placed before the trace ended.
	AtOnce, Placed int
	// Waited is the sum of waiting minutes. Claims that were never placed waited until the end.
	Waited float64
}

// An Outcome is the result of a trace.
type Outcome struct {
	// Sizes maps a number of wanted devices to its tally.
	Sizes map[int]*Tally
	// Stranded is the share of device time that is idle although a claim waits and enough devices for it are idle.
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
	// waiting are the claims that arrived and are not placed, by arrival.
	waiting []int
	now     float64
	Outcome
}

// run replays a trace on a cluster.
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

// tally returns the tally for a claim. For a claim in the warm-up it returns a discarded tally.
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

// try places a claim, and reports whether it fits.
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

// departUntil removes the claims that depart until a time.
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

// advance advances the time without events.
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
