// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/celset/celset/apis/nearest"
	"github.com/celset/celset/apis/setscores"
	"github.com/celset/celset/cel/tree"
)

// managedCluster is a map for CEL, so an expression with a misspelt field compiles. Reading this field fails on each cluster,
// and has() returns false. This file finds misspelt fields. It derives the fields of a ManagedCluster from the Go type, and
// lists the fields of the results of scores() and sets().

// mostUnknown is the maximum number of unknown fields that are reported per expression, and of known fields in one report.
const mostUnknown = 8

// UnknownFields returns an error for each field that an expression reads although no ManagedCluster has the field. The error
// names the most similar field. A field guarded by has() or ? may belong to another kind of cluster, so it is reported only if
// a similar field exists.
func (s *Selector) UnknownFields() []*Error {
	var all []*Error
	for _, e := range s.expressions {
		f := &fieldFinder{scope: tree.Scope[form]{}}
		f.walk(e.program.AST().Expr())
		for _, message := range f.unknown {
			all = append(all, &Error{e.path, fmt.Errorf("%s", message)})
		}
	}
	return all
}

// form describes an expression's value: its fields, or its elements. The zero form means that nothing is known about the value.
type form struct {
	// object is a struct type of the API, or a pointer, list or map type that contains one.
	object reflect.Type
	// names are the fields of a value that has no struct type.
	names []string
	// element is the form of the elements, or nil if object determines it.
	element *form
}

var (
	clusterForm = form{object: reflect.TypeFor[clusterv1.ManagedCluster]()}
	scoresForm  = form{element: &form{names: scoredKeys}}
	setsForm    = form{names: []string{string(setscores.Idle), string(setscores.Now), string(setscores.Packed)}}
)

// inside removes pointers from the type. It returns the zero form for types that CEL does not see as structs, such as
// quantities.
func (f form) inside() form {
	for f.object != nil && f.object.Kind() == reflect.Pointer {
		f.object = f.object.Elem()
	}
	if f.object != nil && value.TypeReflectEntryOf(f.object).CanConvertToUnstructured() {
		return form{}
	}
	return f
}

// fields returns the names of the fields, or nil if they are unknown.
func (f form) fields() []string {
	if f = f.inside(); f.object != nil && f.object.Kind() == reflect.Struct {
		return slices.Sorted(maps.Keys(planOf(f.object).byName))
	}
	return f.names
}

func (f form) field(name string) form {
	if f = f.inside(); f.object == nil || f.object.Kind() != reflect.Struct {
		return form{}
	}
	if at := planOf(f.object).byName[name]; at != nil {
		return form{object: at.GetFrom(reflect.Zero(f.object)).Type()}
	}
	return form{}
}

func (f form) elements() form {
	f = f.inside()
	switch {
	case f.element != nil:
		return *f.element
	case f.object != nil && f.object.Kind() == reflect.Slice:
		return form{object: f.object.Elem()}
	default:
		return form{}
	}
}

// fieldFinder finds unknown fields in an expression. scope maps the variables of macros to the forms of their values.
type fieldFinder struct {
	scope   tree.Scope[form]
	unknown []string
}

// walk returns the form of an expression, and records the unknown fields in it.
func (f *fieldFinder) walk(expr ast.Expr) form {
	if expr.Kind() == ast.ComprehensionKind {
		return f.comprehension(expr.AsComprehension())
	}
	if member, ok := tree.MemberOf(expr); ok {
		return f.member(expr, member)
	}
	var parts []form
	for _, part := range tree.Parts(expr) {
		parts = append(parts, f.walk(part))
	}
	switch {
	case expr.Kind() == ast.IdentKind:
		return f.variable(expr.AsIdent())
	case tree.IsCall(expr, scoresFunction):
		return scoresForm
	case tree.IsCall(expr, setsFunction):
		return setsForm
	case tree.IsCall(expr, "orValue", "value", operators.Conditional) && len(parts) > 0:
		// The form of an optional value is the form of the value inside it.
		if tree.IsCall(expr, operators.Conditional) {
			return parts[1]
		}
		return parts[0]
	default:
		return form{}
	}
}

func (f *fieldFinder) variable(name string) form {
	if known, declared := f.scope.Lookup(name); declared {
		return known
	}
	if name == clusterVariable {
		return clusterForm
	}
	return form{}
}

func (f *fieldFinder) member(expr ast.Expr, member tree.Member) form {
	of := f.walk(member.Container)
	if !member.Known {
		for _, part := range tree.Parts(expr) {
			if part != member.Container {
				f.walk(part)
			}
		}
		return of.elements()
	}
	if names := of.fields(); names != nil && !slices.Contains(names, member.Name) {
		f.note(member, names)
		return form{}
	}
	return of.field(member.Name)
}

func (f *fieldFinder) note(member tree.Member, names []string) {
	if len(f.unknown) >= mostUnknown {
		return
	}
	near := nearest.DidYouMean("", member.Name, slices.Values(names))
	switch {
	case near == "" && !member.Read:
		return
	case near == "":
		near = "; the fields are " + strings.Join(names[:min(len(names), mostUnknown)], ", ")
	}
	of := tree.QualifiedName(member.Container)
	if of != "" {
		of += "."
	}
	message := fmt.Sprintf("%.200s: no such field%s", of+member.Name, near)
	if !slices.Contains(f.unknown, message) {
		f.unknown = append(f.unknown, message)
	}
}

func (f *fieldFinder) comprehension(c ast.ComprehensionExpr) form {
	over, accumulated := f.walk(c.IterRange()), f.walk(c.AccuInit())
	f.scope.Declare(c.AccuVar(), accumulated)
	for _, name := range tree.IterVars(c) {
		f.scope.Declare(name, form{})
	}
	f.scope.Declare(tree.ElementVar(c), over.elements())
	f.walk(c.LoopCondition())
	f.walk(c.LoopStep())
	f.scope.Forget(append(tree.IterVars(c), tree.ElementVar(c))...)
	result := f.walk(c.Result())
	f.scope.Forget(c.AccuVar())
	if _, element, ok := tree.CollectionOf(c); ok && tree.IsIdent(element, tree.ElementVar(c)) {
		return over
	}
	return result
}
