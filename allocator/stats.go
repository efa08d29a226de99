// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import "sync/atomic"

// Stats counts the work that an [Allocator] did, over all its Allocate calls.
// For the same input the counts are the same.
type Stats struct {
	// Steps is the number of times that the search looked for one more device, or
	// found that none is needed.
	Steps int64
	// Evaluations is the number of times a CEL constraint was evaluated on a complete
	// set.
	Evaluations int64
	// TableEvaluations is the number of times a part of a CEL constraint was evaluated
	// on one or two devices, to tell early which sets can't satisfy it.
	TableEvaluations int64
	// Cuts is the number of parts of sets that no completion of which could satisfy a
	// CEL constraint.
	Cuts int64
}

type counts struct {
	steps, evaluations, tableEvaluations, cuts atomic.Int64
}

func (c *counts) add(s *search) {
	c.steps.Add(s.steps)
	for _, constraint := range s.celConstraints {
		c.evaluations.Add(constraint.evaluations)
		c.cuts.Add(constraint.cuts)
		if tables := constraint.pruner.tables; tables != nil {
			c.tableEvaluations.Add(tables.Evaluations())
		}
	}
}

// Stats returns the counts so far.
func (a *Allocator) Stats() Stats {
	return Stats{
		Steps:            a.counts.steps.Load(),
		Evaluations:      a.counts.evaluations.Load(),
		TableEvaluations: a.counts.tableEvaluations.Load(),
		Cuts:             a.counts.cuts.Load(),
	}
}
