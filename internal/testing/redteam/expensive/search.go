// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package expensive

import (
	"bytes"
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// kept is how many expressions of an overload the search goes on from.
	kept = 4
	// mostGenome is how many choices one expression is made of, at most.
	mostGenome = 48
	// samples is how many expressions the median is of, at most: a random part of all.
	samples = 10_000
)

// Options say how long to search, and where to begin.
type Options struct {
	Seed     uint64
	Duration time.Duration
	// Trying is told of each expression before it is evaluated; nil: nobody is.
	Trying func(expression string)
}

// Search looks for expensive expressions until the time is over, or the context. It goes
// around all overloads: each gets the same share.
func Search(ctx context.Context, environment *Environment, options Options) *Report {
	ctx, cancel := context.WithTimeout(ctx, options.Duration)
	defer cancel()
	s := &search{
		Environment: environment, options: options,
		random: rand.New(rand.NewPCG(options.Seed, 0)),
		report: newReport(environment),
	}
	hills := make([]*hill, 0, len(environment.Calls.All()))
	for _, call := range environment.Calls.All() {
		hills = append(hills, &hill{call: call})
	}
	for ctx.Err() == nil {
		for _, h := range hills {
			if ctx.Err() != nil {
				break
			}
			s.step(ctx, h)
		}
	}
	s.report.finish(hills)
	return s.report
}

type search struct {
	*Environment
	options Options
	random  *rand.Rand
	report  *Report
}

// hill is what is known of one overload: the best of its expressions, by time and by
// bytes.
type hill struct {
	call        *Call
	slow, large []Measured
}

// step tries one more expression of an overload.
func (s *search) step(ctx context.Context, h *hill) {
	genome := s.genome(h)
	text := s.Calls.Expression(h.call, genome)
	s.report.Tried++
	if text == "" {
		return
	}
	evaluate, err := s.Compile(text)
	if err != nil {
		s.report.Refused++
		return
	}
	if s.options.Trying != nil {
		s.options.Trying(text)
	}
	// With a context of its own: what it takes is to be known also when the search ends.
	m := measure(context.WithoutCancel(ctx), evaluate, 1)
	if (h.isSlow(&m) || h.isLarge(&m)) && !m.Overdue {
		m = measure(context.WithoutCancel(ctx), evaluate, again)
	}
	m.Expression, m.Call, m.genome = text, h.call, genome
	s.sample(&m)
	h.keep(m)
}

// sample remembers some of all, each with the same chance.
func (s *search) sample(m *Measured) {
	s.report.Measured++
	if m.Cost < leastCost/4 {
		return // too little to say what a unit takes
	}
	s.report.seen++
	if len(s.report.perUnit) < samples {
		s.report.perUnit = append(s.report.perUnit, m.PerUnit())
		s.report.bytesPerUnit = append(s.report.bytesPerUnit, m.BytesPerUnit())
	} else if i := s.random.IntN(s.report.seen); i < samples {
		s.report.perUnit[i], s.report.bytesPerUnit[i] = m.PerUnit(), m.BytesPerUnit()
	}
}

// genome is a new one, or a changed one of the best.
func (s *search) genome(h *hill) []byte {
	best := slices.Concat(h.slow, h.large)
	if len(best) == 0 || s.random.IntN(4) == 0 {
		genome := make([]byte, 4+s.random.IntN(mostGenome-4))
		for i := range genome {
			genome[i] = byte(s.random.Uint32())
		}
		return genome
	}
	genome := bytes.Clone(best[s.random.IntN(len(best))].genome)
	other := best[s.random.IntN(len(best))].genome
	for range 1 + s.random.IntN(3) {
		at := s.random.IntN(len(genome) + 1)
		switch s.random.IntN(4) {
		case 0:
			genome = slices.Insert(genome, at, byte(s.random.Uint32()))
		case 1:
			if at < len(genome) && len(genome) > 4 {
				genome = slices.Delete(genome, at, at+1)
			}
		case 2:
			genome = append(genome[:at:at], other[min(at, len(other)):]...)
		default:
			if at < len(genome) {
				genome[at] = byte(s.random.Uint32())
			}
		}
	}
	return genome[:min(len(genome), mostGenome)]
}

func (h *hill) isSlow(m *Measured) bool {
	return len(h.slow) < kept || m.PerUnit() > h.slow[len(h.slow)-1].PerUnit()
}

func (h *hill) isLarge(m *Measured) bool {
	return len(h.large) < kept || m.BytesPerUnit() > h.large[len(h.large)-1].BytesPerUnit()
}

func (h *hill) keep(m Measured) {
	if h.isSlow(&m) {
		h.slow = insert(h.slow, m, (*Measured).PerUnit)
	}
	if h.isLarge(&m) {
		h.large = insert(h.large, m, (*Measured).BytesPerUnit)
	}
}

// insert keeps the best, each expression once.
func insert(best []Measured, m Measured, by func(*Measured) float64) []Measured {
	if slices.ContainsFunc(best, func(other Measured) bool { return other.Expression == m.Expression }) {
		return best
	}
	best = append(best, m)
	slices.SortStableFunc(best, func(a, b Measured) int { return cmp.Compare(by(&b), by(&a)) })
	return best[:min(len(best), kept)]
}
