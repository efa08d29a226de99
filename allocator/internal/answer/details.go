// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package answer holds the outcome of a search: details and statistics for callers, failures of expressions that concern a node,
// and cached answers. A cached answer has positions of devices instead of objects, because nodes of one hardware type share it.
package answer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/celset/celset/allocator/internal/shape"
)

// Details holds the outcome of one Allocate call besides its results.
type Details struct {
	Stats
	// Outcome is the quality of the results. It is empty unless a preference covers one of the devices.
	Outcome Outcome
	// Preferences holds the values of the results, by claim and then in the order of definition. To compare results, on one node or
	// on several, compare the first value that differs; the greater is better. A preference is left out if it covers no device of
	// the results, or if the budget was exhausted before it.
	Preferences []Value
}

// Value is the value of a preference for the chosen devices.
type Value struct {
	// Claim is the index of the claim.
	Claim int
	// Preference is the index among the preferences of the claim. If a class defines it for two requests, both have the same name.
	Preference int
	// Name is the name of the preference, with its class if the class defines it.
	Name string
	// Value is the value of the expression. For KeepWhole it is 0 if nothing is lost, and smaller the more is lost.
	Value int64
	// Losses holds the counts of the policy KeepWhole, most devices first. It is nil for an expression.
	Losses []Loss
}

// String returns the value, or the lost sets for a policy.
func (v Value) String() string { return DescribeValue(v.Value, v.Losses) }

// DescribeValue returns the text of [Value.String] for copies of its fields.
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

// Loss describes the effect of the chosen devices on the sets of one shape.
type Loss struct {
	shape.Shape `json:",inline"`
	// Lost is the number of sets of the shape that the devices make unavailable. Left is the number of sets that remain.
	Lost int `json:"lost"`
	Left int `json:"left"`
}

// Stats counts the work of searches. The counts depend only on the input and the contents of the cache: if several goroutines
// need a result, one computes it while the others wait.
type Stats struct {
	// Steps is the number of times that the search looked for one more device, or found that it needs no more.
	Steps int64
	// Evaluations is the number of evaluations of CEL constraints on complete sets.
	Evaluations int64
	// SetsAccepted is the number of complete sets that satisfied a CEL constraint.
	SetsAccepted int64
	// SetsProven is the number of accepted sets that needed no evaluation, because the structure of the expression proves the
	// result.
	SetsProven int64
	// TableEvaluations is the number of evaluations of parts of CEL constraints on one or two devices, for the tables of the bounds.
	TableEvaluations int64
	// TableBuilds is the number of tables begun for the bounds.
	TableBuilds int64
	// Cost is the cost charged to the budget, in CEL cost units. A cached verdict costs as much as its evaluation. A cached answer
	// is free.
	Cost int64
	// CacheHits is the number of cached verdicts on complete sets plus the number of cached answers.
	CacheHits int64
	// AnswersKnown is the number of cached answers.
	AnswersKnown int64
	// Cuts is the number of devices that were refused or never tried because no set with them could satisfy a CEL constraint.
	Cuts int64
	// PreferencesBest and PreferencesBestFound count the answers chosen by preferences, by [Outcome].
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

// Outcome is the quality of a set chosen by preferences.
type Outcome string

const (
	// Best means that no better set exists.
	Best Outcome = "best"
	// BestFound means that the search ended early, usually because the budget for preferences was exhausted. Better sets may exist.
	BestFound Outcome = "best found"
)
