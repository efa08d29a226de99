// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/test/perf/report"
)

type (
	// Results are what is kept of all replays: what the report is made from.
	Results = report.Traces
	// Row is what came of the traces with one machine, mix, load and policy.
	Row = report.Replay
	// Outcome is what came of a trace.
	Outcome = report.Outcome
	// Tally is what came of claims of one size.
	Tally = report.Tally
	// Scheduled is what came of traces on a whole scheduler.
	Scheduled = report.Scheduled
	// Timing is how long a policy took.
	Timing = report.Timing
	// Asked is how long it takes to choose on one node.
	Asked = report.Asked
	// Quantiles are the middle and one of a hundred.
	Quantiles = report.Quantiles
)

// Plan says what is replayed.
type Plan struct {
	Nodes, ClaimsADevice, Traces int
	Loads                        []float64
}

// Replay runs all traces with a policy and adds up. What was asked of the machine in a former call
// is remembered.
func (p Plan) Replay(c choosing, mix Mix, load float64, name string) (Row, error) {
	m := c.machine
	row := Row{Machine: m.Name, Mix: mix.Name, Load: load, Policy: name, Outcome: Outcome{Sizes: map[int]*Tally{}}}
	for seed := range uint64(p.Traces) {
		t := p.trace(m, mix, load, seed)
		cluster, err := c.cluster(name, rand.New(rand.NewPCG(seed, 1)))
		if err != nil {
			return row, err
		}
		outcome, err := run(cluster, &t)
		if err != nil {
			return row, fmt.Errorf("%s, %s, load %v, %s: %w", m.Name, mix.Name, load, name, err)
		}
		row.Add(outcome, p.Traces)
	}
	return row, nil
}

func (p Plan) trace(m *Machine, mix Mix, load float64, seed uint64) Trace {
	devices := p.Nodes * m.all().len()
	return NewTrace(mix, p.ClaimsADevice*devices, devices, load, seed)
}

func (p Plan) choosing(m *Machine) choosing {
	return choosing{machine: m, nodes: p.Nodes, remembers: map[string]opener{}}
}

// Measure replays all traces.
func (p Plan) Measure(log func(format string, values ...any)) (*Results, error) {
	machines := Machines()
	rows, errs := make([][]Row, len(machines)), make([]error, len(machines))
	var all sync.WaitGroup
	for i := range machines {
		all.Go(func() { rows[i], errs[i] = p.on(&machines[i], log) })
	}
	all.Wait()
	return &Results{Nodes: p.Nodes, ClaimsADevice: p.ClaimsADevice, Traces: p.Traces, Replays: slices.Concat(rows...)}, errors.Join(errs...)
}

// on replays all on a kind of machine.
func (p Plan) on(m *Machine, log func(format string, values ...any)) ([]Row, error) {
	var rows []Row
	c := p.choosing(m)
	for _, mix := range Mixes() {
		for _, load := range p.Loads {
			for _, name := range policiesOn(m) {
				row, err := p.Replay(c, mix, load, name)
				if err != nil {
					return nil, err
				}
				rows = append(rows, row)
			}
			log("%s, %s, load %v", m.Name, mix.Name, load)
		}
	}
	return rows, nil
}

// MeasureTimes measures how long decisions take.
func (p Plan) MeasureTimes(log func(format string, values ...any)) ([]Timing, error) {
	var times []Timing
	for _, m := range Machines() {
		for _, name := range policiesOn(&m) {
			if name == Random || name == Pool || name == FullestNode || name == KeepWholeTies {
				continue
			}
			timing, err := p.Time(&m, few, 0.85, name)
			if err != nil {
				return nil, err
			}
			times = append(times, timing)
			log("%+v", timing)
		}
	}
	return times, nil
}

// MeasureAsked asks for the best links on nodes.
func MeasureAsked(log func(format string, values ...any)) ([]Asked, error) {
	var asked []Asked
	for _, m := range append(Machines(), linkedMesh()) {
		if !m.anySetWillDo {
			continue
		}
		all := m.all().len()
		for _, idle := range []int{all / 2, all * 3 / 4, all} {
			for _, size := range []int{2, 4} {
				a, err := Ask(&m, idle, size, 200)
				if err != nil {
					return nil, err
				}
				asked = append(asked, a)
				log("%+v", a)
			}
		}
	}
	return asked, nil
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
	t := p.trace(m, mix, load, 1)
	if _, err := run(newNodes(m, p.Nodes, timed{chooses, &decisions}), &t); err != nil {
		return Timing{}, err
	}
	return Timing{
		Machine: m.Name, Policy: name,
		Node: quantiles(asked[len(asked)/2:]), Decision: quantiles(decisions[len(decisions)/2:]),
	}, nil
}

func quantiles(values []float64) Quantiles {
	slices.Sort(values)
	at := func(share float64) float64 { return values[int(share*float64(len(values)-1))] }
	return Quantiles{P50: at(0.5), P99: at(0.99)}
}

// Ask has best effort and the preference for links choose on nodes with so many idle devices, no two
// alike, at most so many of them. The hardware is known: nodes with fewer were asked before. The preference
// is asked for what is known, too: by the next claim, which asks that node first and then one like it.
// Upstream's allocator is asked for the same claim and takes the first devices, for what an allocator does
// beside choosing: on the second of two nodes, without what it does once for a claim. So is ours, where the
// class has no preference.
func Ask(m *Machine, idle, size, most int) (Asked, error) {
	result := Asked{Machine: m.Name, Devices: m.all().len(), Size: size, Idle: idle}
	all := slices.Collect(m.all().subsets(idle))
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:min(most, len(all))]
	result.Asks = len(all)
	var theirs, around, ours, first, further, without []float64
	for round := 0; len(theirs) < fewestAsks; round++ {
		asked, err := newAsked(m, 2, []v1alpha1.CELDevicePreference{m.strongLinks()})
		if err != nil {
			return result, err
		}
		plain, err := newAsked(m, 2, nil)
		if err != nil {
			return result, err
		}
		if _, err := asked.timed(m.all()>>(m.all().len()-size), size, new([]float64), new([]float64)); err != nil {
			return result, err
		}
		for _, free := range all {
			start := time.Now()
			best, err := m.bestEffort(0, free, size)
			theirs = append(theirs, microseconds(start))
			if err != nil {
				return result, err
			}
			if err := asked.timedUpstream(free, size, &around); err != nil {
				return result, err
			}
			linked, err := asked.timed(free, size, &ours)
			if err != nil {
				return result, err
			}
			if _, err := asked.timed(free, size, &first, &further); err != nil {
				return result, err
			}
			// The second claim counts: what is remembered for all claims is known then.
			for _, took := range []*[]float64{new([]float64), &without} {
				if _, err := plain.timed(free, size, new([]float64), took); err != nil {
					return result, err
				}
			}
			if round == 0 {
				result.BestEffortScore += m.score(best.set)
				result.LinksScore += m.score(linked.set)
			}
		}
	}
	result.BestEffort, result.Allocator, result.Links = quantiles(theirs), quantiles(around), quantiles(ours)
	result.Known, result.Further, result.Plain = quantiles(first), quantiles(further), quantiles(without)
	return result, nil
}

// timedUpstream measures upstream's allocator on the second of two nodes that are alike.
func (a *asked) timedUpstream(free Set, size int, took *[]float64) error {
	ctx := context.Background()
	allocator, err := structured.NewAllocator(ctx, features, structured.AllocatedState{AllocatedDevices: a.inUse([]Set{free, free})}, a, a.slices, a.selectors)
	if err != nil {
		return err
	}
	for node := range 2 {
		start := time.Now()
		results, err := allocator.Allocate(ctx, a.nodes[node], []*resourceapi.ResourceClaim{a.claims[size]})
		if node > 0 {
			*took = append(*took, microseconds(start))
		}
		if err != nil || len(results) == 0 {
			return fmt.Errorf("upstream allocates %d times on node %d: %w", len(results), node, err)
		}
	}
	return nil
}

// timed chooses for one claim on nodes that are alike, and measures each.
func (a *asked) timed(free Set, size int, took ...*[]float64) (choice, error) {
	nodes := make([]Set, len(took))
	for i := range nodes {
		nodes[i] = free
	}
	choose, err := a.open(nodes)
	if err != nil {
		return choice{}, err
	}
	var chosen choice
	for i := range nodes {
		start := time.Now()
		chosen, err = choose(i, free, size)
		*took[i] = append(*took[i], microseconds(start))
		if err != nil {
			return choice{}, err
		}
	}
	return chosen, nil
}

// fewestAsks is how often a node is asked at least, if need be several times from the beginning.
const fewestAsks = 5

// describe notes what machine this is.
func describe(r *Results) {
	r.CPU, r.Cores, r.Go = report.CPUModel(), runtime.NumCPU(), runtime.Version()
}
