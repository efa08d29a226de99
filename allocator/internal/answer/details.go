// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package answer describes results of Allocate calls: details and statistics, failures that concern a node, and cached results.
// A cached result has positions of devices instead of objects, because nodes of one hardware type share it.
package answer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/celset/celset/allocator/internal/shape"
)

// Details holds information about one Allocate call in addition to the allocation results.
type Details struct {
	Stats
	// Outcome is the quality of the chosen devices. It is empty unless a preference covers one of them.
	Outcome Outcome
	// Preferences holds the values of preferences for the chosen devices, by claim and then in the order of definition. To
	// compare two results, on one node or on several, compare the first value that differs: the greater value is better. A
	// preference is left out if it covers no chosen device, or if the budget was exhausted before its search.
	Preferences []Value
}

// Value is the value of a preference for the chosen devices.
type Value struct {
	// Claim is the index of the claim.
	Claim int
	// Preference is the index in the claim's preferences. If a class defines a preference for two requests, both have its Name.
	Preference int
	// Name is the name of the preference, with its class if the class defines it.
	Name string
	// Value is the value of the expression. For KeepWhole it is 0 if no set is lost, and smaller the more sets are lost.
	Value int64
	// Losses holds the losses for the policy KeepWhole, shapes with most devices first. It is nil for an expression.
	Losses []Loss
}

// String returns the value of an expression, or the lost sets of a policy.
func (v Value) String() string { return DescribeValue(v.Value, v.Losses) }

// DescribeValue returns the text that [Value.String] returns for a Value with this value and these losses.
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

// Stats counts the work of searches. The counts depend only on the input and the contents of the cache. If several goroutines
// need a value, one computes it while the others wait.
type Stats struct {
	// Steps is the number of times that the search looked for one more device, or for the next request.
	Steps int64
	// Evaluations is the number of evaluations of CEL constraints on complete sets.
	Evaluations int64
	// SetsAccepted is the number of complete sets that satisfied a CEL constraint.
	SetsAccepted int64
	// SetsProven is the number of accepted sets that needed no evaluation, because the bounds proved that the expression is true.
	SetsProven int64
	// TableEvaluations counts evaluations of parts of CEL constraints for one or two devices, for the tables of the bounds.
	TableEvaluations int64
	// TableBuilds is the number of tables that were begun for the bounds.
	TableBuilds int64
	// Cost is the cost charged to the budget, in CEL cost units. A cached verdict costs as much as its evaluation. A cached
	// result of an Allocate call costs nothing.
	Cost int64
	// CacheHits is the number of cached verdicts on complete sets plus the number of cached results of Allocate calls.
	CacheHits int64
	// AnswersKnown is the number of Allocate calls whose result was cached.
	AnswersKnown int64
	// Cuts is the number of devices that were refused or never tried because no set with them could satisfy a CEL constraint.
	Cuts int64
	// PreferencesBest and PreferencesBestFound count the results that preferences chose, by [Outcome].
	PreferencesBest, PreferencesBestFound int64
}

// Sum returns the sum of two statistics.
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
