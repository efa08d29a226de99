// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Results are what is kept of all replays.
type Results struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	Go    string `json:"go"`
	Nodes int    `json:"nodes"`
	// Claims are those of one trace, Traces how many there were with different seeds.
	Claims int      `json:"claims"`
	Traces int      `json:"traces"`
	Replay []Row    `json:"replay"`
	Times  []Timing `json:"times"`
}

// Row is what came of the traces with one machine, mix, load and policy.
type Row struct {
	Machine string  `json:"machine"`
	Mix     string  `json:"mix"`
	Load    float64 `json:"load"`
	Policy  string  `json:"policy"`
	Outcome
}

// Timing is how long a policy took, in microseconds.
type Timing struct {
	Machine string `json:"machine"`
	Policy  string `json:"policy"`
	// Node is for one node, on which a claim for two, four or eight devices fits; Decision for all
	// that are asked for a claim.
	Node, Decision Quantiles
}

// Quantiles are the middle and one of a hundred.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// Plan says what is replayed.
type Plan struct {
	Nodes, Claims, Traces int
	Loads                 []float64
}

// Replay runs all traces with a policy and adds up.
func (p Plan) Replay(m *Machine, mix Mix, load float64, name string) (Row, error) {
	row := Row{Machine: m.Name, Mix: mix.Name, Load: load, Policy: name, Outcome: Outcome{Sizes: map[int]*Tally{}}}
	c := choosing{machine: m, nodes: p.Nodes}
	for seed := range uint64(p.Traces) {
		t := NewTrace(mix, p.Claims, p.Nodes*m.all().len(), load, seed)
		cluster, err := c.cluster(name, rand.New(rand.NewPCG(seed, 1)))
		if err != nil {
			return row, err
		}
		outcome, err := run(cluster, &t)
		if err != nil {
			return row, fmt.Errorf("%s, %s, load %v, %s: %w", m.Name, mix.Name, load, name, err)
		}
		row.add(outcome, p.Traces)
	}
	return row, nil
}

// add takes in one of so many outcomes.
func (o *Outcome) add(other Outcome, of int) {
	for size, tally := range other.Sizes {
		if o.Sizes[size] == nil {
			o.Sizes[size] = &Tally{}
		}
		sum := o.Sizes[size]
		sum.Claims += tally.Claims
		sum.AtOnce += tally.AtOnce
		sum.Placed += tally.Placed
		sum.Waited += tally.Waited
		sum.Score += tally.Score
	}
	o.Busy += other.Busy / float64(of)
	o.Stranded += other.Stranded / float64(of)
}

// timed measures a policy.
type timed struct {
	policy
	decisions *[]float64
}

func (t timed) place(free []Set, size int) (int, Set, error) {
	start := time.Now()
	node, set, err := t.policy.place(free, size)
	*t.decisions = append(*t.decisions, microseconds(start))
	return node, set, err
}

func microseconds(since time.Time) float64 { return float64(time.Since(since).Nanoseconds()) / 1000 }

// timedNodes measures what a policy asks of nodes on which several devices fit.
func timedNodes(open opener, took *[]float64) opener {
	return func(free []Set) (chooser, error) {
		choose, err := open(free)
		if err != nil {
			return nil, err
		}
		return func(node int, free Set, size int) (choice, error) {
			start := time.Now()
			c, err := choose(node, free, size)
			if size > 1 && c.set != 0 {
				*took = append(*took, microseconds(start))
			}
			return c, err
		}, nil
	}
}

// Time replays a trace with a policy that is asked each time for each node, with the allocator that a
// scheduler would make for it, and measures the second half.
func (p Plan) Time(m *Machine, mix Mix, load float64, name string) (Timing, error) {
	var decisions, asked []float64
	c := choosing{machine: m, nodes: p.Nodes, direct: true, around: func(open opener) opener { return timedNodes(open, &asked) }}
	chooses, err := c.policy(name, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		return Timing{}, err
	}
	t := NewTrace(mix, p.Claims, p.Nodes*m.all().len(), load, 1)
	if _, err := run(newNodes(m, p.Nodes, timed{chooses, &decisions}), &t); err != nil {
		return Timing{}, err
	}
	return Timing{m.Name, name, quantiles(asked[len(asked)/2:]), quantiles(decisions[len(decisions)/2:])}, nil
}

func quantiles(values []float64) Quantiles {
	slices.Sort(values)
	at := func(share float64) float64 { return values[int(share*float64(len(values)-1))] }
	return Quantiles{at(0.5), at(0.99)}
}
