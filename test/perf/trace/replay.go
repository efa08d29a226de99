// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import "container/heap"

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
