// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// Traces is what test/perf/trace measured.
type Traces struct {
	CPU           string   `json:"cpu"`
	Cores         int      `json:"cores"`
	Go            string   `json:"go"`
	Nodes         int      `json:"nodes"`
	ClaimsADevice int      `json:"claimsADevice"`
	Traces        int      `json:"traces"`
	Replays       []Replay `json:"replay"`
	Times         []Timing `json:"times"`
	Asked         []Asked  `json:"asked"`
}

// Replay is what came of traces with one kind of machine, mix of claims, load and policy.
type Replay struct {
	Machine string           `json:"machine"`
	Mix     string           `json:"mix"`
	Load    float64          `json:"load"`
	Policy  string           `json:"policy"`
	Sizes   map[int]*Placing `json:"sizes"`
	// Busy and Stranded are shares of all device time.
	Busy     float64 `json:"busy"`
	Stranded float64 `json:"stranded"`
}

// Placing is what came of claims of one size.
type Placing struct {
	Claims int     `json:"claims"`
	AtOnce int     `json:"atOnce"`
	Placed int     `json:"placed"`
	Waited float64 `json:"waited"`
	Score  int     `json:"score"`
}

// Timing is how long a policy takes for a node, and for a claim.
type Timing struct {
	Machine  string    `json:"machine"`
	Policy   string    `json:"policy"`
	Node     Quantiles `json:"node"`
	Decision Quantiles `json:"decision"`
}

// Asked is how long it takes to choose on one node, in microseconds.
type Asked struct {
	Machine         string    `json:"machine"`
	Devices         int       `json:"devices"`
	Size            int       `json:"size"`
	Idle            int       `json:"idle"`
	BestEffort      Quantiles `json:"bestEffort"`
	Links           Quantiles `json:"links"`
	BestEffortScore int       `json:"bestEffortScore"`
	LinksScore      int       `json:"linksScore"`
	Asks            int       `json:"asks"`
}

// Quantiles are microseconds.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
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
func (r *Replay) sum(value func(*Placing) float64, sizes ...int) float64 {
	if r == nil {
		return 0
	}
	total := 0.0
	for size, placing := range r.Sizes {
		if len(sizes) == 0 || slices.Contains(sizes, size) {
			total += value(placing)
		}
	}
	return total
}

func claims(p *Placing) float64 { return float64(p.Claims) }
func atOnce(p *Placing) float64 { return float64(p.AtOnce) }
func placed(p *Placing) float64 { return float64(p.Placed) }
func waited(p *Placing) float64 { return p.Waited }
func score(p *Placing) float64  { return float64(p.Score) }

// share is a part of a whole, 0 if there is none.
func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}
