// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redteam contains attacks of a user who wants to stop celset for everybody else, and who may write in one namespace only
// or report for one managed cluster.
//
//	for _, c := range redteam.Cases() {
//		c.Text // an expression, a request or a quantity
//		c.Where // the API fields that it can be written into
//		c.Attack, c.Why // its target, and how it works
//	}
//
// Each case, or a similar one, was seen to take seconds or gigabytes, or to crash the program, with unmodified CEL. Cases that
// CEL itself refuses are kept in case an update of CEL accepts them. The right answer to a case does not matter. An answer or an
// error must come soon, with little memory.
//
// The package contains only texts. Its tests measure them in their own process, and test/redteam in whole programs.
package redteam

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/template"

	"sigs.k8s.io/yaml"
)

// An Attack is the target of a case.
type Attack string

const (
	// Time is for long evaluations.
	Time Attack = "time"
	// Memory is for values that are too large.
	Memory Attack = "memory"
	// Compilation is for texts that are expensive before evaluation.
	Compilation Attack = "compilation"
	// Panic is for texts that may crash a program.
	Panic Attack = "panic"
)

// Where is the set of places where a case can be written.
type Where uint

const (
	// Device is an expression over "devices", of a constraint in a claim.
	Device Where = 1 << iota
	// Selector is an expression over "device", of a request in a claim.
	Selector
	// Cluster is an expression over "managedCluster", of a Placement, including Placements sent to debug endpoints.
	Cluster
	// Body is a request body for the debug endpoint in place of a Placement.
	Body
	// Report is a status that a managed cluster reports. Text is an expression of a harmless user that reads the status, or "".
	Report
	// Search is a cheap expression over "devices" that the search can't analyse, so it evaluates the expression on one set after the
	// other.
	Search
	// Preference is an expression over "devices" for the value of a set, of a preference in a claim.
	Preference

	// Anywhere is for expressions without variables.
	Anywhere = Device | Selector | Cluster
)

// A Case is one attack.
type Case struct {
	// Name is unique, and can be part of the name of an object.
	Name   string
	Attack Attack
	Where  Where
	// Why explains the attack in a sentence.
	Why string
	// Text is the expression, the body or the quantity.
	Text string
	// Devices is the number of devices of a claim; zero means two.
	Devices int64
	// Constraints is how often a claim contains the expression, as constraint or preference; zero means once.
	Constraints int
	// Reported is the managed cluster's report, for [Report] and for expressions that read it.
	Reported Reported
}

// Reported are parts of a ManagedCluster.
type Reported struct {
	// Allocatable maps resources to quantities.
	Allocatable map[string]string
	// Claims maps names to values.
	Claims map[string]string
	// Annotations can be longer than claims.
	Annotations map[string]string
}

// Is reports whether the case can be written in a place.
func (c *Case) Is(where Where) bool { return c.Where&where != 0 }

//go:embed cases.yaml
var file []byte

// Cases returns all cases in a fixed order.
func Cases() []Case { return slices.Clone(all()) }

// all panics on mistakes, because tests read all cases.
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
				// ManyClaims is the number of claims.
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

// asValue turns a condition into a value: a set that satisfies the condition is worth more.
func asValue(c Case) Case {
	c.Text = "(" + c.Text + ") ? 1 : 0"
	c.Constraints = min(c.Constraints, mostPreferences)
	return c
}

// mostPreferences is the maximal number of preferences in a claim.
const mostPreferences = 4

// AsPreferences returns the cases for preferences, and the cases for constraints used as preferences.
func AsPreferences() []Case {
	cases := On(Preference)
	for _, c := range On(Device | Search) {
		cases = append(cases, asValue(c))
	}
	return cases
}

// composed executes the templates between « and » in a text, with the functions below.
func composed(text string) string {
	if !strings.Contains(text, "«") {
		return text
	}
	parsed, err := template.New("").Delims("«", "»").Funcs(template.FuncMap{
		"times": times, "nested": nested, "doubled": doubled, "textOf": textOf, "loops": loops,
		"joined": joined, "numbered": numbered, "staircase": staircase,
	}).Parse(text)
	if err != nil {
		panic(err)
	}
	var result strings.Builder
	if err := parsed.Execute(&result, nil); err != nil {
		panic(err)
	}
	return result.String()
}

func composedAll(texts map[string]string) map[string]string {
	for name, text := range texts {
		texts[name] = composed(text)
	}
	return texts
}

// times repeats a text.
func times(n int, text string) string { return strings.Repeat(text, n) }

// nested encloses a text in n pairs of left and right.
func nested(n int, left, between, right string) string {
	return times(n, left) + between + times(n, right)
}

// doubled binds v0 to seed, v1 to double with X replaced by v0, and so on n times. In body, X is replaced by the last variable.
func doubled(n int, seed, double, body string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "cel.bind(v0, %s, ", seed)
	for i := range n {
		fmt.Fprintf(&text, "cel.bind(v%d, %s, ", i+1, strings.ReplaceAll(double, "X", fmt.Sprintf("v%d", i)))
	}
	return text.String() + strings.ReplaceAll(body, "X", fmt.Sprintf("v%d", n)) + times(n+1, ")")
}

// textOf replaces X in the body by an expression for a text of 2^n times ten letters, which is cheap to create.
func textOf(n int, body string) string { return doubled(n, "'aaaaaaaaaa'", "X + X", body) }

// loops nests n loops over a list of ten and evaluates body in the innermost. The loops never end early. The variables are x0, x1
// and so on.
func loops(n int, body string) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "[1,2,3,4,5,6,7,8,9,10].all(x%d, ", i)
	}
	return text.String() + body + times(n, ")")
}

// joined repeats a text n times with a separator.
func joined(n int, text, separator string) string {
	return strings.TrimSuffix(times(n, text+separator), separator)
}

// numbered joins n texts. In the i-th text %d is replaced by i and %n by i+1.
func numbered(n int, separator, text string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.NewReplacer("%d", fmt.Sprint(i), "%n", fmt.Sprint(i+1)).Replace(text)
	}
	return strings.Join(parts, separator)
}

// staircase joins nested empty lists: [], [[]] and so on up to depth n.
func staircase(n int, separator string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = nested(i+1, "[", "", "]")
	}
	return strings.Join(parts, separator)
}

func manyClaims(n int) map[string]string {
	result := make(map[string]string, n)
	for i := range n {
		result[fmt.Sprintf("claim-%04d", i)] = times(20, "v")
	}
	return result
}
