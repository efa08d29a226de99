// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package normal

import (
	"maps"

	"github.com/google/cel-go/common/ast"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/tree"
)

// A Variable is an iteration variable over devices, with its name and its slot.
type Variable struct {
	Name string
	Slot int
}

// A referent is the meaning of an identifier: the device of the iteration variable in slot if isDevice is set, otherwise some
// other value.
type referent struct {
	isDevice bool
	slot     int
}

// DeviceIn returns the meaning of an identifier that is the iteration variable over devices with the slot.
func DeviceIn(slot int) referent { return referent{true, slot} }

// A Scope maps the identifiers of local variables to their meanings. Other identifiers are declared by the environment.
type Scope map[string]referent

// With returns a copy of the scope with one more name.
func (s Scope) With(name string, is referent) Scope {
	result := make(Scope, len(s)+1)
	maps.Copy(result, s)
	result[name] = is
	return result
}

// References returns the free variables of a part that are devices. single is false if the part refers to the set, or to a free
// variable that is not a device.
func References(expr ast.Expr, s Scope) (free []Variable, single bool) {
	single = true
	seen := make(map[string]bool)
	tree.Visit(expr, func(e ast.Expr, hidden tree.Names) {
		if e.Kind() != ast.IdentKind {
			return
		}
		name := e.AsIdent()
		if hidden.Has(name) || seen[name] {
			return
		}
		switch is, known := s[name]; {
		case !known && device.IsSet(name) || known && !is.isDevice:
			single = false
		case known:
			seen[name] = true
			free = append(free, Variable{name, is.slot})
		}
	})
	return free, single
}

// VariablesOf returns the free variables of an expression.
func VariablesOf(expr ast.Expr) sets.Set[string] {
	result := sets.New[string]()
	tree.Visit(expr, func(e ast.Expr, hidden tree.Names) {
		if e.Kind() == ast.IdentKind && !hidden.Has(e.AsIdent()) {
			result.Insert(e.AsIdent())
		}
	})
	return result
}

// Within returns the scope inside a loop over devices, whose variable gets the slot.
func (s Scope) Within(c ast.ComprehensionExpr, slot int) Scope {
	return s.Inside(c).With(tree.ElementVar(c), DeviceIn(slot))
}

// Inside returns the scope inside a loop over any values. Its variables are not devices.
func (s Scope) Inside(c ast.ComprehensionExpr) Scope {
	return s.With(c.AccuVar(), referent{}).With(c.IterVar(), referent{}).With(tree.ElementVar(c), referent{})
}

// without returns a copy of the scope where the names are not devices.
func (s Scope) without(names tree.Names) Scope {
	for name := range names {
		if names.Has(name) {
			s = s.With(name, referent{})
		}
	}
	return s
}

// DeviceOf returns the slot of an expression that is an iteration variable over devices.
func DeviceOf(expr ast.Expr, s Scope) (slot int, ok bool) {
	if expr.Kind() != ast.IdentKind {
		return 0, false
	}
	is := s[expr.AsIdent()]
	return is.slot, is.isDevice
}

// IsOfDevice reports whether an expression refers to at most one device and not to the set.
func IsOfDevice(expr ast.Expr, s Scope) bool {
	free, single := References(expr, s)
	return single && len(free) <= 1
}
