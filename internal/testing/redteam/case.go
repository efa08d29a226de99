// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package redteam

import (
	"slices"
	"strings"
)

// Attack is what a case is after.
type Attack string

const (
	// Time is for what evaluates for too long.
	Time Attack = "time"
	// Memory is for values that are too large.
	Memory Attack = "memory"
	// Compilation is for what takes too much before it is evaluated.
	Compilation Attack = "compilation"
	// Panic is for what ends a program that does not expect it.
	Panic Attack = "panic"
)

// Where is what a case can be written into; a set.
type Where uint

const (
	// Device is an expression over "devices", of a constraint in a claim.
	Device Where = 1 << iota
	// Selector is an expression over "device", of a request in a claim.
	Selector
	// Cluster is an expression over "managedCluster", of a Placement; wherever a
	// Placement can be sent to be looked at, too.
	Cluster
	// Body is what is sent to the debug endpoint in place of a Placement.
	Body
	// Report is what a managed cluster says of itself; Text is the expression that
	// somebody harmless reads it with, "" if nobody does.
	Report
	// Search is an expression over "devices" that costs little and tells nothing, so
	// that it is tried on one set after the other.
	Search
	// Preference is an expression over "devices", of a preference in a claim: what a set
	// is worth.
	Preference

	// Anywhere is for expressions that name no variable.
	Anywhere = Device | Selector | Cluster
)

// Case is one attack.
type Case struct {
	// Name is unique, and can be part of the name of an object.
	Name   string
	Attack Attack
	Where  Where
	// Why says in a sentence how it works.
	Why string
	// Text is the expression, the body or the quantity.
	Text string
	// Devices is how many devices a claim asks for; zero: two.
	Devices int64
	// Constraints is how many times a claim has the expression, as constraint or preference; zero:
	// once.
	Constraints int
	// Reported is what a managed cluster says of itself, for [Report] and for
	// expressions that read it.
	Reported Reported
}

// Reported are parts of a ManagedCluster.
type Reported struct {
	// Allocatable are quantities by resource.
	Allocatable map[string]string
	// Claims are values by name.
	Claims map[string]string
	// Annotations can be longer than claims.
	Annotations map[string]string
}

// Is tells whether the case can be written there.
func (c *Case) Is(where Where) bool { return c.Where&where != 0 }

// Cases returns all of them, in a fixed order.
func Cases() []Case {
	return slices.Concat(
		lists(), doublings(), texts(), patterns(), quantities(), libraries(), formats(), loops(),
		nesting(), long(), macros(), types(), panics(),
		clusters(), reports(), bodies(), searches(), relations(), searchedRelations(), preferences(),
	)
}

// On returns the cases for a place.
func On(where Where) []Case {
	return slices.DeleteFunc(Cases(), func(c Case) bool { return !c.Is(where) })
}

// attack is what the cases of one kind have in common.
func attack(a Attack, where Where, cases ...Case) []Case {
	for i := range cases {
		if cases[i].Attack == "" {
			cases[i].Attack = a
		}
		if cases[i].Where == 0 {
			cases[i].Where = where
		}
	}
	return cases
}

func (w Where) String() string {
	var names []string
	for i, name := range []string{"device", "selector", "cluster", "body", "report", "search", "preference"} {
		if w&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}
