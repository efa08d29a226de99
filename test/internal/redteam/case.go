// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redteam contains attacks of a user who wants to stop celset for everybody else, but may write only in one namespace,
// or report for only one managed cluster.
//
//	for _, c := range redteam.Cases() {
//		c.Text // an expression, a request or a quantity
//		c.Where // the API fields that it can be written into
//		c.Attack, c.Why // its target, and how it works
//	}
//
// With unmodified CEL, each case or a similar one took seconds or gigabytes, or crashed the program. Some cases are rejected by
// CEL now; they stay in case an update of CEL accepts them. The result of a case does not matter. A result or an error must
// come soon, and with little memory.
//
// The package contains only texts. Its tests evaluate them in a child process. The package test/redteam sends them to whole
// programs.
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

// An Attack is the resource that a case exhausts.
type Attack string

const (
	// Time cases take long to evaluate.
	Time Attack = "time"
	// Memory cases create values that are too large.
	Memory Attack = "memory"
	// Compilation cases are expensive before they are evaluated.
	Compilation Attack = "compilation"
	// Panic cases may crash a program.
	Panic Attack = "panic"
)

// Where is a set of places into which a case can be written.
type Where uint

const (
	// Device is the expression of a constraint in a claim. It reads "devices".
	Device Where = 1 << iota
	// Selector is the expression of a selector in a claim's request. It reads "device".
	Selector
	// Cluster is an expression in a Placement, which may also be sent to the debug endpoint. It reads "managedCluster".
	Cluster
	// Body is a request body that is sent to the debug endpoint instead of a Placement.
	Body
	// Report is the status of a managed cluster. Text is the expression of a harmless user that reads the status, or "".
	Report
	// Search is a cheap constraint that reads "devices". The search can't analyse it, so it evaluates the expression for one
	// set after the other.
	Search
	// Preference is the expression of a preference in a claim. It reads "devices".
	Preference

	// Anywhere is all places for an expression that reads no variable.
	Anywhere = Device | Selector | Cluster
)

// A Case is one attack.
type Case struct {
	// Name is a unique name that can be part of an object's name.
	Name   string
	Attack Attack
	Where  Where
	// Why explains the attack in a sentence.
	Why string
	// Text is the expression, the body or the quantity.
	Text string
	// Devices is the number of devices that the claim requests. Zero means two.
	Devices int64
	// Constraints is the number of times that the claim contains the expression, as constraint or preference. Zero means once.
	Constraints int
	// Reported is the status that the managed cluster reports. It is set for [Report], and for expressions that read it.
	Reported Reported
}

// Reported are the parts of a ManagedCluster that the cluster's agent controls.
type Reported struct {
	// Allocatable maps names of resources to quantities.
	Allocatable map[string]string
	// Claims maps names of ClusterClaims to values.
	Claims map[string]string
	// Annotations maps names of annotations to values. A value can be longer than the value of a ClusterClaim.
	Annotations map[string]string
}

// Is reports whether the case can be written into one of the places.
func (c *Case) Is(where Where) bool { return c.Where&where != 0 }

//go:embed cases.yaml
var file []byte

// Cases returns all cases in a fixed order.
func Cases() []Case { return slices.Clone(all()) }

// all builds the cases. A mistake is a panic, because it affects all tests.
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
				// ManyClaims is the number of generated ClusterClaims.
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

// On returns the cases that can be written into one of the places.
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

// asValue turns the case of a constraint into a case of a preference: the value is larger if the condition is true.
func asValue(c Case) Case {
	c.Text = "(" + c.Text + ") ? 1 : 0"
	c.Constraints = min(c.Constraints, mostPreferences)
	return c
}

// mostPreferences is the maximal number of preferences in a claim.
const mostPreferences = 4

// AsPreferences returns the cases for preferences, and the cases for constraints that asValue has converted.
func AsPreferences() []Case {
	cases := On(Preference)
	for _, c := range On(Device | Search) {
		cases = append(cases, asValue(c))
	}
	return cases
}

// composed replaces each template between « and » in a text by the template's result. Templates can call the functions below.
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

// times repeats a text n times.
func times(n int, text string) string { return strings.Repeat(text, n) }

// nested puts n times left before between, and n times right after it.
func nested(n int, left, between, right string) string {
	return times(n, left) + between + times(n, right)
}

// doubled returns an expression with n nested variables. v0 has the value seed. Each next variable has the value double, with X
// replaced by the previous variable. In body, X is replaced by the last variable.
func doubled(n int, seed, double, body string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "cel.bind(v0, %s, ", seed)
	for i := range n {
		fmt.Fprintf(&text, "cel.bind(v%d, %s, ", i+1, strings.ReplaceAll(double, "X", fmt.Sprintf("v%d", i)))
	}
	return text.String() + strings.ReplaceAll(body, "X", fmt.Sprintf("v%d", n)) + times(n+1, ")")
}

// textOf returns body with X replaced by an expression for a text of 10 * 2^n letters. The expression is cheap to evaluate.
func textOf(n int, body string) string { return doubled(n, "'aaaaaaaaaa'", "X + X", body) }

// loops returns n nested loops over a list of ten elements that evaluate body in the innermost loop. No loop ends early. The
// loop variables are x0, x1 and so on.
func loops(n int, body string) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "[1,2,3,4,5,6,7,8,9,10].all(x%d, ", i)
	}
	return text.String() + body + times(n, ")")
}

// joined repeats a text n times, with the separator in between.
func joined(n int, text, separator string) string {
	return strings.TrimSuffix(times(n, text+separator), separator)
}

// numbered repeats a text n times, with the separator in between. In the i-th repetition, %d is replaced by i, and %n by i+1.
func numbered(n int, separator, text string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.NewReplacer("%d", fmt.Sprint(i), "%n", fmt.Sprint(i+1)).Replace(text)
	}
	return strings.Join(parts, separator)
}

// staircase joins empty lists with increasing depth, up to n: [], [[]], [[[]]] and so on.
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
