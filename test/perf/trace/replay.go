// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import "container/heap"

// warmUp is the share of a trace at the beginning that is not counted: most devices are free then.
const warmUp = 0.2

// queue is what claims come to, and depart from.
type queue interface {
	// arrive has a claim placed, if it can be. Otherwise it waits.
	arrive(claim, size int) (placement, bool, error)
	// depart takes the devices from a claim, and returns what those got that waited.
	depart(claim, size int, had placement) (map[int]placement, error)
}

// placement is what a claim got.
type placement struct {
	node  int
	set   Set
	score int
}

// replay is a queue while a trace goes on.
type replay struct {
	queue   queue
	devices int
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

// run replays a trace on a cluster.
func run(c cluster, t *Trace) (Outcome, error) {
	return runOn(&retrying{cluster: c, idle: c.devices()}, c.devices(), t)
}

// runOn replays a trace on so many devices.
func runOn(q queue, devices int, t *Trace) (Outcome, error) {
	r := &replay{queue: q, devices: devices, trace: t, idle: devices, sizes: map[int]*Tally{}}
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
	counted := float64(devices) * t.End * (1 - warmUp)
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
	got, placed, err := r.queue.arrive(claim, r.trace.Claims[claim].Devices)
	switch {
	case err != nil:
		return err
	case placed:
		r.enter(claim, got)
	default:
		r.waiting = append(r.waiting, claim)
	}
	return nil
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
	size := r.trace.Claims[d.claim].Devices
	r.idle += size
	placed, err := r.queue.depart(d.claim, size, d.placement)
	if err != nil {
		return err
	}
	waiting := r.waiting[:0]
	for _, claim := range r.waiting {
		if got, ok := placed[claim]; ok {
			r.enter(claim, got)
		} else {
			waiting = append(waiting, claim)
		}
	}
	r.waiting = waiting
	return nil
}

// enter notes that a claim was placed now.
func (r *replay) enter(claim int, got placement) {
	c := r.trace.Claims[claim]
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
}

// advance lets time pass in which nothing happens.
func (r *replay) advance(to float64) {
	if passed := to - max(r.now, warmUp*r.trace.End); passed > 0 {
		r.busy += passed * float64(r.devices-r.idle)
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
