// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"math/big"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cmd/kubectl-celset/output"
)

// Report is what was found out, object by object. CheckReport.yaml in package output is its schema.
type Report struct {
	output.Meta
	// Warnings are about what was read and is no object that can be checked.
	Warnings []Finding `json:"warnings,omitempty"`
	Objects  []Object  `json:"objects"`
}

// Object is a claim, a template, a class or a group that refers to constraints or defines some, or has
// preferences.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Errors keep the claim from being allocated, Warnings are about what is allowed and hardly meant:
	// what admission says, and what the devices say.
	Errors      []Finding    `json:"errors,omitempty"`
	Warnings    []Finding    `json:"warnings,omitempty"`
	Constraints []Constraint `json:"constraints,omitempty"`
	// Preferences hold for the claim, in their order, or are those of the class.
	Preferences []Preference `json:"preferences,omitempty"`
	// NodeSetConstraints are those that the object defines.
	NodeSetConstraints []NodeSetConstraint `json:"nodeSetConstraints,omitempty"`
}

// NodeSetConstraint says on which nodes the pods of a PodGroup may run together.
type NodeSetConstraint struct {
	Name string `json:"name"`
	// Source is where it stands.
	Source string `json:"source"`
}

// Constraint is an expression and, in claims and templates, a reference to it.
type Constraint struct {
	Name string `json:"name"`
	// Field is where the reference stands, or the request which has the constraint by default.
	// It is empty if nothing refers to the definition.
	Field string `json:"field,omitempty"`
	// Default: it holds without a reference, because the class says so.
	Default bool `json:"default,omitempty"`
	// Source is where the definition stands.
	Source string `json:"source"`
	// Requests are those that the reference covers, empty for all.
	Requests []string `json:"requests,omitempty"`
	Facts
	// Conjuncts are the conditions joined by "&&".
	Conjuncts []Conjunct `json:"conjuncts,omitempty"`
	// TooExpensive: one evaluation might cross the limit, so that the search has to try each
	// set although it understands the expression.
	TooExpensive bool `json:"tooExpensive,omitempty"`
	// Pruned: the search can rule out sets without evaluating them.
	Pruned bool `json:"pruned"`
	// Search is what looking for a set ended with, as if all devices were free, empty if there was no search.
	Search Outcome `json:"search,omitempty"`
	// NotKnown is why a search has no answer.
	NotKnown string `json:"notKnown,omitempty"`
	// Nodes have candidates for the sets.
	Nodes []NodeSets `json:"nodes,omitempty"`
}

// Preference is what says which of the sets is to be taken.
type Preference struct {
	Name string `json:"name"`
	// Source is where it stands: in the claim, or in the class of the requests.
	Source string `json:"source"`
	// Requests are those that it is about, empty for all.
	Requests []string `json:"requests,omitempty"`
	// Policy is what it is built in for; nothing of Facts is known then but the sizes.
	Policy v1alpha1.PreferencePolicy `json:"policy,omitempty"`
	Facts
	// Read: the search can tell what a value can still become, and leaves out sets that can't be
	// better. If not, it evaluates one set after the other until its budget for preferences ends.
	Read bool `json:"read"`
	// Nodes have candidates for the sets.
	Nodes []NodeSets `json:"nodes,omitempty"`
}

// Facts are what is known of the expression of a constraint or a preference. Of one that does not compile they are
// the sizes.
type Facts struct {
	// Devices are the sizes that a set can have, in ascending order: several if
	// alternatives ask for different counts, none if the node decides. Assumed: nothing
	// says how many, and the option Count was taken.
	Devices []int `json:"devices,omitempty"`
	Assumed bool  `json:"assumed,omitempty"`
	// counted: the option was set.
	counted bool
	// Type is that of the result: bool, of a preference int, or dyn if only an evaluation can tell.
	Type string `json:"type,omitempty"`
	// Reads are the attributes that the expression reads; ReadsAll: it can't be told which.
	Reads    []Attribute `json:"reads,omitempty"`
	ReadsAll bool        `json:"readsAll,omitempty"`
	// Cost is an upper estimate for one evaluation on a set of the greatest size, in CEL
	// cost units; math.MaxUint64 if there is no limit. CostLimit ends an evaluation that does cost more.
	Cost      uint64 `json:"cost,omitempty"`
	CostLimit uint64 `json:"costLimit,omitempty"`
}

// Attribute is an attribute that an expression reads.
type Attribute struct {
	Domain string `json:"domain"`
	Name   string `json:"name"`
	// Types counts the candidates by the type that they publish the attribute with;
	// Missing are those that don't.
	Types   map[string]int `json:"types,omitempty"`
	Missing int            `json:"missing,omitempty"`
}

// Understanding is how much of a conjunct the search understands.
type Understanding string

// A conjunct that is not understood is asked for complete sets only.
const (
	Understood       Understanding = "understood"
	PartlyUnderstood Understanding = "partly understood"
	NotUnderstood    Understanding = "not understood"
)

// Conjunct is one of the conditions of an expression.
type Conjunct struct {
	// Text is the condition as CEL writes it, Line and Column where it begins.
	Text          string        `json:"text"`
	Line          int           `json:"line"`
	Column        int           `json:"column"`
	Understanding Understanding `json:"understanding"`
}

// NodeSets is the number of sets that a constraint can get on a node.
type NodeSets struct {
	Node string `json:"node"`
	// Candidates match the covered requests, Free are those that nobody has.
	Candidates int `json:"candidates"`
	Free       int `json:"free"`
	// Unusable devices pass the selectors too, and have a taint that the requests don't tolerate or need a feature that is off.
	Unusable int `json:"unusable,omitempty"`
	// Sets of all candidates, and of the free ones.
	Sets     *big.Int `json:"sets"`
	FreeSets *big.Int `json:"freeSets"`
}

// Valid tells that nothing is wrong with any object; with strict, that there are no warnings either.
func (r *Report) Valid(strict bool) bool {
	if strict && len(r.Warnings) > 0 {
		return false
	}
	for _, object := range r.Objects {
		if len(object.Errors) > 0 || strict && len(object.Warnings) > 0 {
			return false
		}
	}
	return true
}
