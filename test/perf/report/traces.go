// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// Traces is what test/perf/trace measured, which writes it.
type Traces struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	Go    string `json:"go"`
	Nodes int    `json:"nodes"`
	// ClaimsADevice are those of one trace, Traces how many there were with different seeds.
	ClaimsADevice int      `json:"claimsADevice"`
	Traces        int      `json:"traces"`
	Replays       []Replay `json:"replay"`
	Times         []Timing `json:"times"`
	Asked         []Asked  `json:"asked"`
	// Scheduled are the traces that were replayed on a whole scheduler.
	Scheduled []Scheduled `json:"scheduled"`
}

// Replay is what came of the traces with one kind of machine, mix of claims, load and policy.
type Replay struct {
	Machine string  `json:"machine"`
	Mix     string  `json:"mix"`
	Load    float64 `json:"load"`
	Policy  string  `json:"policy"`
	Outcome
}

// Outcome is what came of a trace, or of several.
type Outcome struct {
	// Sizes are by the number of devices wanted.
	Sizes map[int]*Tally `json:"sizes"`
	// Busy and Stranded are shares of the device time: in use, and idle while a claim waited that
	// wanted no more devices than were idle.
	Busy     float64 `json:"busy"`
	Stranded float64 `json:"stranded"`
}

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

// Scheduled is what came of traces on a whole scheduler, and of the same in simulation.
type Scheduled struct {
	Machine       string  `json:"machine"`
	Mix           string  `json:"mix"`
	Load          float64 `json:"load"`
	Nodes         int     `json:"nodes"`
	ClaimsADevice int     `json:"claimsADevice"`
	Traces        int     `json:"traces"`
	// Scheduler says how it was configured, Policy what stands for it in simulation.
	Scheduler string  `json:"scheduler"`
	Policy    string  `json:"policy"`
	Real      Outcome `json:"real"`
	Simulated Outcome `json:"simulated"`
	// Decisions are how many claims were placed. Late are those before the scheduler heard of the devices
	// that became free last, Others those that the simulation would have placed elsewhere.
	Decisions int `json:"decisions"`
	Late      int `json:"late"`
	Others    int `json:"others"`
}

// Timing is how long a policy took, in microseconds.
type Timing struct {
	Machine string `json:"machine"`
	Policy  string `json:"policy"`
	// Node is for one node, on which a claim for two, four or eight devices fits; Decision for all
	// that are asked for a claim.
	Node     Quantiles `json:"node"`
	Decision Quantiles `json:"decision"`
}

// Asked is how long it takes to choose on one node.
type Asked struct {
	Machine string `json:"machine"`
	Devices int    `json:"devices"`
	Size    int    `json:"size"`
	// Of idle devices any other may be in use.
	Idle int `json:"idle"`
	// BestEffort and the others are in microseconds: Allocator for what upstream's takes which does not choose,
	// Links for what was not asked before, Known for the same asked by another claim, of its first node,
	// Further of another like it. Plain is Further for the same claim where its class has no preference.
	BestEffort Quantiles `json:"bestEffort"`
	Allocator  Quantiles `json:"allocator"`
	Links      Quantiles `json:"links"`
	Known      Quantiles `json:"known"`
	Further    Quantiles `json:"further"`
	Plain      Quantiles `json:"plain"`
	// The scores are the sums of what the links are worth of all sets that were chosen.
	BestEffortScore int `json:"bestEffortScore"`
	LinksScore      int `json:"linksScore"`
	// Asks is how many different nodes were asked.
	Asks int `json:"asks"`
}

// Quantiles are the middle and one of a hundred.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// Add takes in one of so many outcomes.
func (o *Outcome) Add(other Outcome, of int) {
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

// ReadTraces reads what was kept.
func ReadTraces(path string) (*Traces, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	traces := &Traces{}
	if err := json.Unmarshal(content, traces); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return traces, nil
}

// of finds a replay, nil if there is none.
func (t *Traces) of(machine, mix string, load float64, policy string) *Replay {
	i := slices.IndexFunc(t.Replays, func(r Replay) bool {
		return r.Machine == machine && r.Mix == mix && r.Load == load && r.Policy == policy
	})
	if i < 0 {
		return nil
	}
	return &t.Replays[i]
}

// distinct are the different values of the replays, in their order.
func distinct[T comparable](t *Traces, value func(Replay) T) []T {
	var values []T
	for _, r := range t.Replays {
		if v := value(r); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

func (t *Traces) machines() []string {
	return distinct(t, func(r Replay) string { return r.Machine })
}
func (t *Traces) mixes() []string  { return distinct(t, func(r Replay) string { return r.Mix }) }
func (t *Traces) loads() []float64 { return distinct(t, func(r Replay) float64 { return r.Load }) }

// policies are those that were replayed on a machine.
func (t *Traces) policies(machine string) []string {
	some := &Traces{}
	for _, r := range t.Replays {
		if r.Machine == machine {
			some.Replays = append(some.Replays, r)
		}
	}
	return distinct(some, func(r Replay) string { return r.Policy })
}

// sum adds up over claims of some sizes, all if none are named.
func (r *Replay) sum(value func(*Tally) float64, sizes ...int) float64 {
	if r == nil {
		return 0
	}
	return r.Outcome.sum(value, sizes...)
}

func (o *Outcome) sum(value func(*Tally) float64, sizes ...int) float64 {
	total := 0.0
	for size, tally := range o.Sizes {
		if len(sizes) == 0 || slices.Contains(sizes, size) {
			total += value(tally)
		}
	}
	return total
}

func claims(t *Tally) float64 { return float64(t.Claims) }
func atOnce(t *Tally) float64 { return float64(t.AtOnce) }
func placed(t *Tally) float64 { return float64(t.Placed) }
func waited(t *Tally) float64 { return t.Waited }
func score(t *Tally) float64  { return float64(t.Score) }

// share is a part of a whole, 0 if there is none.
func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}
