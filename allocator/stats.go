// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import "sync/atomic"

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
	// TableEvaluations is the number of times a part of a CEL constraint was evaluated
	// on one or two devices, to tell early which sets can't satisfy it.
	TableEvaluations int64
	// TableBuilds is the number of tables that were begun for that.
	TableBuilds int64
	// CacheHits is the number of verdicts on complete sets that were known before, and of
	// answers as a whole.
	CacheHits int64
	// Cuts is the number of devices that were not tried because no set with them could
	// satisfy a CEL constraint, and of those that were given up when they were tried.
	Cuts int64
}

type counts struct {
	steps, evaluations, setsAccepted, tableEvaluations, tableBuilds, cacheHits, cuts atomic.Int64
}

func (c *counts) add(s *search) {
	c.steps.Add(s.steps)
	c.cacheHits.Add(s.hits)
	for _, constraint := range s.celConstraints {
		c.evaluations.Add(constraint.evaluations)
		c.setsAccepted.Add(constraint.accepted)
		c.cacheHits.Add(constraint.hits)
		c.cuts.Add(constraint.cuts)
		if bounds := constraint.pruner.bounds; bounds != nil {
			c.tableEvaluations.Add(bounds.Evaluations())
			c.tableBuilds.Add(bounds.Builds())
		}
	}
}

// Stats returns the counts so far.
func (a *Allocator) Stats() Stats {
	return Stats{
		Steps:            a.counts.steps.Load(),
		Evaluations:      a.counts.evaluations.Load(),
		SetsAccepted:     a.counts.setsAccepted.Load(),
		TableEvaluations: a.counts.tableEvaluations.Load(),
		TableBuilds:      a.counts.tableBuilds.Load(),
		CacheHits:        a.counts.cacheHits.Load(),
		Cuts:             a.counts.cuts.Load(),
	}
}
