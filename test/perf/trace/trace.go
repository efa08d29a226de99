// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trace replays claims that come and go against the allocator, and counts what becomes of
// them by who chooses nodes and sets of devices: the first that fit, NVIDIA's best-effort policy, or
// KeepWhole.
//
//	make trace > new.txt
//	benchstat -col /policy new.txt
//
// Time is simulated. What is counted depends on seeds alone, not on the machine that it runs on, so
// that each row needs one run.
//
// Nodes of one kind are alike, and what is chosen on one depends only on the devices that are free
// there: it is asked for once for each such set of devices and each size of claims.
package trace

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/celset/celset/internal/testing/shape"
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

// choice is what is chosen on a node: the set, empty if none fits, and what preferences say of it,
// the greater the better.
type choice struct {
	set    shape.Set
	values []int64
}

// chooser chooses on a node with so much free.
type chooser func(free shape.Set, size int) (choice, error)

// policy says where a claim is placed: on the node with the greatest values of those where something
// fits, the first of several.
type policy struct {
	name string
	// anyNode takes any of several nodes, as kube-scheduler does where scores are equal.
	anyNode bool
	// chooses what is taken on a node. There is none where all devices are of one pool without nodes:
	// no choice of nodes and sets can place a claim that it can't.
	chooses func(*Machine) (chooser, error)
}

// policies are those that are compared on a machine.
func policies(m *Machine) []policy {
	first := func(m *Machine) (chooser, error) { return m.asked() }
	keepWhole := func(m *Machine) (chooser, error) { return m.asked(m.keepWhole()...) }
	all := []policy{{"today", true, first}, {"first-fit", false, first}}
	if m.gpus != nil {
		all = append(all, policy{"best-effort", false, func(m *Machine) (chooser, error) { return m.bestEffort, nil }})
	}
	return append(all, policy{"KeepWhole", false, keepWhole}, policy{"KeepWhole-any-node", true, keepWhole}, policy{"pool", false, nil})
}

// chooser is what the policy takes on a node. It asks once: what is chosen depends on nothing but what
// is free.
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

// cluster is nodes of one kind, and who chooses among them.
type cluster struct {
	machine *Machine
	devices int
	free    []shape.Set
	choose  chooser
	// chance decides between nodes that are as good, nil: the first is taken.
	chance *rand.Rand
}

func newCluster(m *Machine, nodes int, choose chooser) *cluster {
	return &cluster{machine: m, devices: nodes * m.all().Len(), free: slices.Repeat([]shape.Set{m.all()}, nodes), choose: choose}
}

// placement is what a claim got.
type placement struct {
	node int
	set  shape.Set
}

// place takes devices, if it can.
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
			// Each of those that are equal has the same chance.
			if equal++; c.chance.IntN(equal) == 0 {
				chosen, best = node, got
			}
		}
	}
	if chosen < 0 {
		return placement{}, false, nil
	}
	// Nobody is trusted.
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

// warmUp is the share of a trace at the beginning that is not counted: most devices are free then.
const warmUp = 0.2

// Tally is what came of claims of one size.
type Tally struct {
	Claims int
	// AtOnce were placed when they arrived, Placed before the trace ended.
	AtOnce, Placed int
	// Waited is the sum of the minutes, until the end for those that were not placed.
	Waited float64
}

// Outcome is what came of a trace.
type Outcome struct {
	// Sizes are by the number of devices wanted.
	Sizes map[int]*Tally
	// Stranded is the share of the device time that is idle while a claim waits that wants no more
	// devices than are idle.
	Stranded float64
}

// replay is a trace that goes on. A claim is tried when it arrives, whoever waits, and those that wait
// in the order of their arrival whenever one departs, as a scheduler does that holds back nobody. Of
// those of one size that wait, the first that does not fit stands for all.
type replay struct {
	cluster *cluster
	trace   *Trace
	idle    int
	running departures
	// waiting are claims that arrived and were not placed, in this order.
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

// tally is that of the claim, one that nobody reads if the claim is not counted.
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

// try places a claim, if it can.
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

// departUntil has all depart whose time has come.
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

// advance lets time pass in which nothing happens.
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

// departure is when a claim gives its devices back.
type departure struct {
	at    float64
	claim int
	placement
}

// departures are a heap, the next first.
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
