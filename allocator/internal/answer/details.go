// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package answer has the outcome of a search: details and statistics for callers, failures of expressions that are about a
// node, and answers that are kept for other nodes. A kept answer has positions of devices in place of objects, because nodes
// of one hardware type share it.
package answer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/celset/celset/allocator/internal/shape"
)

// Details has the outcome of one Allocate call besides its results.
type Details struct {
	Stats
	// Outcome tells how good the results are. It is empty unless a preference is about a device of
	// them.
	Outcome Outcome
	// Preferences are the values of the results, in the order of the preferences: those of the first
	// claim, in the order in which they are defined, those of the next. The greater the first of them
	// that differ, the better, on this node or on another. A preference that is about no device of the
	// results has none, and so have those to which the search did not come because the budget was used
	// up.
	Preferences []Value
}

// Value is the value of a preference for the devices that were chosen.
type Value struct {
	// Claim is the place of the claim among those that were allocated.
	Claim int
	// Preference is its place among those that are about the claim. Two of one class, for two
	// requests, have the same name.
	Preference int
	// Name is that of the preference, with its class if it is defined there.
	Name string
	// Value is that of the expression. Of KeepWhole it is 0 if nothing is lost, and less the more is.
	Value int64
	// Losses are what the policy KeepWhole counted, most devices first. nil for an expression.
	Losses []Loss
}

// String returns the value, or for a policy the sets that are lost.
func (v Value) String() string { return DescribeValue(v.Value, v.Losses) }

// DescribeValue is [Value.String] for the fields of a copy.
func DescribeValue(value int64, losses []Loss) string {
	if len(losses) == 0 {
		return strconv.FormatInt(value, 10)
	}
	texts := make([]string, len(losses))
	for i, l := range losses {
		texts[i] = fmt.Sprintf("%d of %d sets of %d (constraint %s of class %s)", l.Lost, l.Lost+l.Left, l.Count, l.Constraint, l.Class)
	}
	return "breaks " + strings.Join(texts, ", ")
}

// Loss is the number of sets of a shape that the chosen devices break.
type Loss struct {
	shape.Shape `json:",inline"`
	// Lost is how many sets of the shape can't be had any more because of them, Left how many still can.
	Lost int `json:"lost"`
	Left int `json:"left"`
}

// Stats counts the work of searches. For the same input and the same contents of the cache the counts are the same: if
// several goroutines need a result, one of them finds it out while the others wait.
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
	// Cost is the cost charged to the budget, in CEL cost units. A verdict that was
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
	// [Outcome].
	PreferencesBest, PreferencesBestFound int64
}

// Sum adds two counts.
func Sum(s, o Stats) Stats {
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

// Outcome tells how good a set is that was chosen by preferences.
type Outcome string

const (
	// Best means that no set is better.
	Best Outcome = "best"
	// BestFound means that the search ended before, usually because the budget for
	// preferences was used up: sets that nobody looked at may be better.
	BestFound Outcome = "best found"
)
