// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"math/big"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cmd/kubectl-celset/output"
)

// Report is the result of a check, with an entry for each object. CheckReport.yaml in package output is its schema.
type Report struct {
	output.Meta
	// Warnings name documents that the command can't check.
	Warnings []Finding `json:"warnings,omitempty"`
	Objects  []Object  `json:"objects"`
}

// Object is a claim, template, class or group that defines or references constraints, or has preferences. It may also be a
// DeviceAttributes object.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Errors prevent an allocation. Warnings concern valid input that is probably not intended. Both kinds come from the
	// admission checks and from comparing expressions with the devices in the cluster.
	Errors      []Finding    `json:"errors,omitempty"`
	Warnings    []Finding    `json:"warnings,omitempty"`
	Constraints []Constraint `json:"constraints,omitempty"`
	// Preferences are, for a claim, the preferences that apply to it, in order. For a class, they are the preferences that it
	// defines.
	Preferences []Preference `json:"preferences,omitempty"`
	// NodeSetConstraints are the constraints on sets of nodes that the object defines.
	NodeSetConstraints []NodeSetConstraint `json:"nodeSetConstraints,omitempty"`
	// AddedAttributes is the effect of DeviceAttributes. It is nil for other kinds, and for an object without effect.
	AddedAttributes *AddedAttributes `json:"addedAttributes,omitempty"`
}

// NodeSetConstraint restricts the nodes on which the pods of a PodGroup may run together.
type NodeSetConstraint struct {
	Name string `json:"name"`
	// Source is the object and field that define the constraint.
	Source string `json:"source"`
}

// Constraint is a constraint that a class defines, or that a claim or template uses.
type Constraint struct {
	Name string `json:"name"`
	// Field is the path of the reference in the claim. For a constraint that the class enforces, it is the path of the request.
	// It is empty for a definition without a reference.
	Field string `json:"field,omitempty"`
	// Default is set if the constraint applies without a reference, because the class enforces it.
	Default bool `json:"default,omitempty"`
	// Source is the object and field that define the constraint.
	Source string `json:"source"`
	// Requests are the covered requests. Empty means all requests.
	Requests []string `json:"requests,omitempty"`
	Facts
	// Conjuncts are the conditions joined by "&&".
	Conjuncts []Conjunct `json:"conjuncts,omitempty"`
	// TooExpensive is set if one evaluation might exceed the cost limit. The search then evaluates every set, although it
	// understands the expression.
	TooExpensive bool `json:"tooExpensive,omitempty"`
	// Pruned is set if the search can exclude sets without evaluating them.
	Pruned bool `json:"pruned"`
	// Search is the outcome of a search for a set, as if all devices were free. It is empty if there was no search.
	Search Outcome `json:"search,omitempty"`
	// NotKnown is the reason why the search ended without an outcome.
	NotKnown string `json:"notKnown,omitempty"`
	// Nodes are the nodes with candidates for the sets.
	Nodes []NodeSets `json:"nodes,omitempty"`
}

// Preference ranks the sets that satisfy the constraints.
type Preference struct {
	Name string `json:"name"`
	// Source is the object and field that define the preference, in the claim or in the class of the requests.
	Source string `json:"source"`
	// Requests are the requests that the preference covers. Empty means all requests.
	Requests []string `json:"requests,omitempty"`
	// Policy is the built-in policy of a preference without an expression. In this case only the sizes in Facts are set.
	Policy v1alpha1.PreferencePolicy `json:"policy,omitempty"`
	Facts
	// Read is set if the search can bound the value and skip sets that can't be better than the best set so far. Otherwise the
	// search evaluates sets one by one until its budget for preferences is used up.
	Read bool `json:"read"`
	// Nodes are the nodes with candidates for the sets.
	Nodes []NodeSets `json:"nodes,omitempty"`
}

// Facts describe the expression of a constraint or a preference. If the expression does not compile, only the sizes are set.
type Facts struct {
	// Devices are the possible sizes of a set, in ascending order. There are several sizes if the alternatives of a request
	// have different counts, or if the nodes differ. Assumed is set if neither the objects nor the nodes determine the size, so
	// that it comes from the option Count.
	Devices []int `json:"devices,omitempty"`
	Assumed bool  `json:"assumed,omitempty"`
	// counted is set if the user gave the option Count.
	counted bool
	// Type is the type of the expression's result: bool, int for a preference, or dyn if the type is known only at run time.
	Type string `json:"type,omitempty"`
	// Reads are the attributes that the expression reads. ReadsAll is set if it may read any attribute.
	Reads    []Attribute `json:"reads,omitempty"`
	ReadsAll bool        `json:"readsAll,omitempty"`
	// Cost is an upper estimate for one evaluation on the largest set, in CEL cost units. It is math.MaxUint64 if there is no
	// upper estimate. An evaluation that exceeds CostLimit fails.
	Cost      uint64 `json:"cost,omitempty"`
	CostLimit uint64 `json:"costLimit,omitempty"`
}

// Attribute is an attribute that an expression reads.
type Attribute struct {
	Domain string `json:"domain"`
	Name   string `json:"name"`
	// Types maps a type to the number of candidates that publish the attribute with this type. Missing is the number of
	// candidates without the attribute.
	Types   map[string]int `json:"types,omitempty"`
	Missing int            `json:"missing,omitempty"`
	// From are the DeviceAttributes objects that add the attribute to candidates. It is empty if drivers publish the attribute.
	From []string `json:"from,omitempty"`
}

// Understanding says how much of a conjunct the search can use to exclude incomplete sets.
type Understanding string

// The search evaluates a conjunct that it does not understand only for complete sets.
const (
	Understood       Understanding = "understood"
	PartlyUnderstood Understanding = "partly understood"
	NotUnderstood    Understanding = "not understood"
)

// Conjunct is one of the conditions that "&&" joins in an expression.
type Conjunct struct {
	// Text is the condition in CEL. Line and Column are its position.
	Text          string        `json:"text"`
	Line          int           `json:"line"`
	Column        int           `json:"column"`
	Understanding Understanding `json:"understanding"`
}

// NodeSets holds the number of sets that are possible on a node for one constraint.
type NodeSets struct {
	Node string `json:"node"`
	// Candidates is the number of devices that match the covered requests. Free is the number of candidates that are not in use.
	Candidates int `json:"candidates"`
	Free       int `json:"free"`
	// Unusable counts devices that match the selectors but have an untolerated taint or need a disabled feature.
	Unusable int `json:"unusable,omitempty"`
	// Sets is the number of sets of any candidates. FreeSets is the number of sets of free candidates.
	Sets     *big.Int `json:"sets"`
	FreeSets *big.Int `json:"freeSets"`
}

// Valid reports whether no object has errors. With strict, it also requires that there are no warnings.
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
