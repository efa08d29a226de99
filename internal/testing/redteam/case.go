// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package redteam

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"
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

//go:embed cases.yaml
var file []byte

// Cases returns all of them, in a fixed order.
func Cases() []Case { return slices.Clone(all()) }

// all panics over mistakes, because tests read all cases.
var all = sync.OnceValue(func() []Case {
	var groups []struct {
		Group, What, Where string
		Attack             Attack
		Cases              []struct {
			Name, Where, Why, Text string
			Attack                 Attack
			Devices                int64
			Constraints            int
			Reported               struct {
				Allocatable, Claims, Annotations map[string]string
				// ManyClaims is how many there are.
				ManyClaims int
			}
		}
	}
	if err := yaml.UnmarshalStrict(file, &groups); err != nil {
		panic(err)
	}
	var result []Case
	for _, group := range groups {
		for _, c := range group.Cases {
			reported := Reported{composedAll(c.Reported.Allocatable), composedAll(c.Reported.Claims), composedAll(c.Reported.Annotations)}
			if c.Reported.ManyClaims > 0 {
				reported.Claims = manyClaims(c.Reported.ManyClaims)
			}
			result = append(result, Case{
				Name: c.Name, Attack: cmp.Or(c.Attack, group.Attack), Where: whereOf(cmp.Or(c.Where, group.Where)), Why: c.Why,
				Text: composed(c.Text), Devices: c.Devices, Constraints: c.Constraints, Reported: reported,
			})
		}
	}
	return result
})

// On returns the cases for a place.
func On(where Where) []Case {
	return slices.DeleteFunc(Cases(), func(c Case) bool { return !c.Is(where) })
}

var places = []string{"device", "selector", "cluster", "body", "report", "search", "preference"}

func whereOf(text string) (w Where) {
	for name := range strings.SplitSeq(text, "+") {
		i := slices.Index(places, name)
		if i < 0 {
			panic("there is no place " + name)
		}
		w |= 1 << i
	}
	return w
}

func (w Where) String() string {
	var names []string
	for i, name := range places {
		if w&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

// asValue makes a condition a value. A set for which it holds is worth more.
func asValue(c Case) Case {
	c.Text = "(" + c.Text + ") ? 1 : 0"
	c.Constraints = min(c.Constraints, mostPreferences)
	return c
}

// mostPreferences is how many a claim may have.
const mostPreferences = 4

// AsPreferences are the cases for preferences, and those for constraints in the place of a
// preference.
func AsPreferences() []Case {
	cases := On(Preference)
	for _, c := range On(Device | Search) {
		cases = append(cases, asValue(c))
	}
	return cases
}
