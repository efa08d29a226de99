// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"math"
	"sync/atomic"
)

// Stats counts the work that an [Allocator] did, over all its Allocate calls. For the
// same input, the contents of the [Cache] included, the counts are the same: what
// several goroutines need is found out by one of them while the others wait.
type Stats struct {
	// Steps is the number of times that the search looked for one more device, or
	// found that none is needed.
	Steps int64
	// Evaluations is the number of times a CEL constraint was evaluated on a complete
	// set.
	Evaluations int64
	// SetsAccepted is the number of complete sets that satisfied a CEL constraint.
	SetsAccepted int64
	// SetsProven is the number of those for which that followed from the structure of the
	// expression, without an evaluation.
	SetsProven int64
	// TableEvaluations is the number of times a part of a CEL constraint was evaluated
	// on one or two devices, to tell early which sets can't satisfy it.
	TableEvaluations int64
	// TableBuilds is the number of tables that were begun for that.
	TableBuilds int64
	// Cost is what was charged to the cost budget, in CEL cost units. A verdict that was
	// known is charged as if it had been found out, an answer that was known is free.
	Cost int64
	// CacheHits is the number of verdicts on complete sets that were known before, and of
	// answers as a whole.
	CacheHits int64
	// AnswersKnown is the latter.
	AnswersKnown int64
	// Cuts is the number of devices that were not tried because no set with them could
	// satisfy a CEL constraint, and of those that were given up when they were tried.
	Cuts int64
}

// stats counts what one search did.
func (s *search) stats() Stats {
	stats := Stats{Steps: s.work.steps, Cost: int64(min(s.work.cost.Spent(), math.MaxInt64)), CacheHits: s.hits, AnswersKnown: s.hits}
	for _, constraint := range s.celConstraints {
		stats.Evaluations += constraint.evaluations
		stats.SetsAccepted += constraint.accepted
		stats.SetsProven += constraint.proven
		stats.CacheHits += constraint.hits
		stats.Cuts += constraint.cuts()
		for _, p := range constraint.pruners {
			if p.bounds != nil {
				stats.TableEvaluations += p.bounds.Evaluations()
				stats.TableBuilds += p.bounds.Builds()
			}
		}
	}
	return stats
}

// counts adds up what searches that run at the same time did.
type counts struct {
	steps, evaluations, setsAccepted, setsProven, tableEvaluations, tableBuilds, cost, cacheHits, answersKnown, cuts atomic.Int64
}

func (c *counts) add(s Stats) {
	c.steps.Add(s.Steps)
	c.evaluations.Add(s.Evaluations)
	c.setsAccepted.Add(s.SetsAccepted)
	c.setsProven.Add(s.SetsProven)
	c.tableEvaluations.Add(s.TableEvaluations)
	c.tableBuilds.Add(s.TableBuilds)
	c.cost.Add(s.Cost)
	c.cacheHits.Add(s.CacheHits)
	c.answersKnown.Add(s.AnswersKnown)
	c.cuts.Add(s.Cuts)
}

// Stats returns the counts so far.
func (a *Allocator) Stats() Stats {
	return Stats{
		Steps:            a.counts.steps.Load(),
		Evaluations:      a.counts.evaluations.Load(),
		SetsAccepted:     a.counts.setsAccepted.Load(),
		SetsProven:       a.counts.setsProven.Load(),
		TableEvaluations: a.counts.tableEvaluations.Load(),
		TableBuilds:      a.counts.tableBuilds.Load(),
		Cost:             a.counts.cost.Load(),
		CacheHits:        a.counts.cacheHits.Load(),
		AnswersKnown:     a.counts.answersKnown.Load(),
		Cuts:             a.counts.cuts.Load(),
	}
}
