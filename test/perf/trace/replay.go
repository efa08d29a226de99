// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import "container/heap"

// Tally is what came of claims of one size.
type Tally struct {
	Claims int `json:"claims"`
	// AtOnce were placed when they arrived, Placed before the trace ended.
	AtOnce int `json:"atOnce"`
	Placed int `json:"placed"`
	// Waited is the sum of the minutes, until the end for those that were not placed.
	Waited float64 `json:"waited"`
	// Score is the sum of what the links are worth of those that were placed.
	Score int `json:"score,omitempty"`
}

// Outcome is what came of a trace.
type Outcome struct {
	// Sizes are by the number of devices wanted.
	Sizes map[int]*Tally `json:"sizes"`
	// Busy and Stranded are shares of the device time: in use, and idle while a claim waited that
	// wanted no more devices than were idle.
	Busy     float64 `json:"busy"`
	Stranded float64 `json:"stranded"`
}

// warmUp is the share of a trace at the beginning that is not counted: most devices are free then.
const warmUp = 0.2

// cluster is what claims are placed on.
type cluster interface {
	// devices are how many there are.
	devices() int
	// place takes devices, if it can.
	place(size int) (placement, bool, error)
	release(placement)
}

// placement is what a claim got.
type placement struct {
	node  int
	set   Set
	score int
}

// replay is a cluster while a trace goes on.
type replay struct {
	cluster cluster
	trace   *Trace
	idle    int
	running departures
	// waiting are claims that arrived and were not placed, in this order.
	waiting []int
	now     float64
	// busy and stranded are device time, after the warm-up.
	busy, stranded float64
	sizes          map[int]*Tally
}

// run places a claim when it arrives, whoever waits, and those that wait in the order of their
// arrival whenever one departs, as a scheduler does that holds back nobody. Of those of one size
// that wait, the first that does not fit stands for all.
func run(c cluster, t *Trace) (Outcome, error) {
	r := &replay{cluster: c, trace: t, idle: c.devices(), sizes: map[int]*Tally{}}
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
		if tally := r.tally(i); tally != nil {
			tally.Waited += t.End - t.Claims[i].Arrival
		}
	}
	counted := float64(c.devices()) * t.End * (1 - warmUp)
	return Outcome{Sizes: r.sizes, Busy: r.busy / counted, Stranded: r.stranded / counted}, nil
}

// tally is that of the claim, nil if it is not counted.
func (r *replay) tally(claim int) *Tally {
	c := r.trace.Claims[claim]
	if c.Arrival < warmUp*r.trace.End {
		return nil
	}
	if r.sizes[c.Devices] == nil {
		r.sizes[c.Devices] = &Tally{}
	}
	return r.sizes[c.Devices]
}

func (r *replay) arrive(claim int) error {
	r.advance(r.trace.Claims[claim].Arrival)
	if tally := r.tally(claim); tally != nil {
		tally.Claims++
	}
	placed, err := r.try(claim)
	if !placed {
		r.waiting = append(r.waiting, claim)
	}
	return err
}

// departUntil has all depart whose time has come.
func (r *replay) departUntil(at float64) error {
	for len(r.running) > 0 && r.running[0].at <= at {
		if err := r.depart(); err != nil {
			return err
		}
	}
	return nil
}

func (r *replay) depart() error {
	d := heap.Pop(&r.running).(departure)
	r.advance(d.at)
	r.cluster.release(d.placement)
	r.idle += r.trace.Claims[d.claim].Devices
	refused := map[int]bool{}
	waiting := r.waiting[:0]
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
	return nil
}

func (r *replay) try(claim int) (bool, error) {
	c := r.trace.Claims[claim]
	if c.Devices > r.idle {
		return false, nil
	}
	got, placed, err := r.cluster.place(c.Devices)
	if err != nil || !placed {
		return false, err
	}
	r.idle -= c.Devices
	heap.Push(&r.running, departure{r.now + c.Duration, claim, got})
	if tally := r.tally(claim); tally != nil {
		tally.Placed++
		tally.Waited += r.now - c.Arrival
		tally.Score += got.score
		if r.now == c.Arrival {
			tally.AtOnce++
		}
	}
	return true, nil
}

// advance lets time pass in which nothing happens.
func (r *replay) advance(to float64) {
	if passed := to - max(r.now, warmUp*r.trace.End); passed > 0 {
		r.busy += passed * float64(r.cluster.devices()-r.idle)
		for _, claim := range r.waiting {
			if r.trace.Claims[claim].Devices <= r.idle {
				r.stranded += passed * float64(r.idle)
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
