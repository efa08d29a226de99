// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redteam has what somebody would write who wants to stop celset for everybody
// else, and who may write in one namespace only, or who reports for one managed cluster.
//
//	for _, c := range redteam.Cases() {
//		c.Text // an expression, a request or a quantity
//		c.Where // what it can be written into
//		c.Attack, c.Why // what it is after, and how
//	}
//
// Each case was seen to take seconds or gigabytes, or to end the program, in CEL as it
// is, or it is there because one like it was. Cases that CEL itself refuses are kept if
// an update of CEL could accept them. Nobody expects an answer to any of them: what is
// expected is that there is one soon, or an error, and that it takes little memory.
//
// The package has only texts: what they do is measured by its tests in a process of their
// own, and in whole programs by test/redteam.
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

// composed executes what stands between « and » in a text, with the functions below.
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

// nested puts what is between into n pairs of left and right.
func nested(n int, left, between, right string) string {
	return times(n, left) + between + times(n, right)
}

// doubled binds v0 to seed, v1 to double with v0 in the place of X, and so on n times; body has the
// last one in the place of X.
func doubled(n int, seed, double, body string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "cel.bind(v0, %s, ", seed)
	for i := range n {
		fmt.Fprintf(&text, "cel.bind(v%d, %s, ", i+1, strings.ReplaceAll(double, "X", fmt.Sprintf("v%d", i)))
	}
	return text.String() + strings.ReplaceAll(body, "X", fmt.Sprintf("v%d", n)) + times(n+1, ")")
}

// textOf has, in the place of X in the body, an expression for a text of 2 to the power of n times ten
// letters, which costs little to make.
func textOf(n int, body string) string { return doubled(n, "'aaaaaaaaaa'", "X + X", body) }

// loops goes n times through a list of ten, one inside the other, and evaluates body at the innermost
// place; it never ends early. The variables are x0, x1 and so on.
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

// numbered joins n texts. The ith one has i in the place of %d and i+1 in that of %n.
func numbered(n int, separator, text string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.NewReplacer("%d", fmt.Sprint(i), "%n", fmt.Sprint(i+1)).Replace(text)
	}
	return strings.Join(parts, separator)
}

// staircase joins lists of all depths up to n.
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
