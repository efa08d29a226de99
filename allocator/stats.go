// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"math"
	"sync"
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
	// PreferencesBest and PreferencesBestFound are the numbers of answers chosen by preferences, by
	// [PreferenceOutcome].
	PreferencesBest, PreferencesBestFound int64
}

// stats counts what one search did, and those for better solutions that followed.
func (s *search) stats() Stats {
	stats := Stats{Steps: s.work.steps, Cost: int64(min(s.work.cost.Spent(), math.MaxInt64)), CacheHits: s.hits, AnswersKnown: s.hits}
	switch s.preferred.outcome {
	case PreferenceBest:
		stats.PreferencesBest = 1
	case PreferenceBestFound:
		stats.PreferencesBestFound = 1
	}
	if w, is := s.objective.(*wholeness); is {
		stats.Cuts += w.cut
	}
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
	return stats.plus(s.preferred.spent)
}

func (s Stats) plus(o Stats) Stats {
	return Stats{
		Steps:                s.Steps + o.Steps,
		Evaluations:          s.Evaluations + o.Evaluations,
		SetsAccepted:         s.SetsAccepted + o.SetsAccepted,
		SetsProven:           s.SetsProven + o.SetsProven,
		TableEvaluations:     s.TableEvaluations + o.TableEvaluations,
		TableBuilds:          s.TableBuilds + o.TableBuilds,
		Cost:                 s.Cost + o.Cost,
		CacheHits:            s.CacheHits + o.CacheHits,
		AnswersKnown:         s.AnswersKnown + o.AnswersKnown,
		Cuts:                 s.Cuts + o.Cuts,
		PreferencesBest:      s.PreferencesBest + o.PreferencesBest,
		PreferencesBestFound: s.PreferencesBestFound + o.PreferencesBestFound,
	}
}

// counts adds up what searches that run at the same time did.
type counts struct {
	mutex sync.Mutex
	sum   Stats
}

func (c *counts) add(s Stats) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.sum = c.sum.plus(s)
}

// Stats returns the counts so far.
func (a *Allocator) Stats() Stats {
	a.counts.mutex.Lock()
	defer a.counts.mutex.Unlock()
	return a.counts.sum
}
