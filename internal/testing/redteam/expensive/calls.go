// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package expensive

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Calls are all overloads of an environment that an expression can name.
type Calls struct {
	all       []*Call
	functions map[string]*decls.FunctionDecl
}

// NewCalls lists the overloads of functions, in a fixed order. Those that only macros can
// call are left out, and those of the authorizer, of which expressions here have none.
func NewCalls(functions map[string]*decls.FunctionDecl) *Calls {
	result := &Calls{functions: functions}
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		if strings.Contains(name, "@") || strings.HasPrefix(name, "__not") || name == operators.OldIn || name == "in" {
			continue
		}
		overloads := slices.Clone(functions[name].OverloadDecls())
		slices.SortFunc(overloads, func(a, b *decls.OverloadDecl) int { return cmp.Compare(a.ID(), b.ID()) })
		for _, overload := range overloads {
			if !slices.ContainsFunc(overload.ArgTypes(), authorization) {
				result.all = append(result.all, &Call{name, overload})
			}
		}
	}
	return result
}

func authorization(t *types.Type) bool {
	return strings.HasPrefix(t.TypeName(), "kubernetes.authorization.")
}

// All returns the overloads.
func (c *Calls) All() []*Call { return c.all }

func (c *Calls) has(function string) bool { return c.functions[function] != nil }

// returning are the calls that make a value of a type.
func (c *Calls) returning(t *types.Type) []*Call {
	var result []*Call
	for _, call := range c.all {
		if of := call.Overload.ResultType(); of.Kind() == t.Kind() && of.TypeName() == t.TypeName() && fits(of, t) {
			result = append(result, call)
		}
	}
	return result
}

// fits tells whether type parameters can make one type the other.
func fits(parameter, t *types.Type) bool {
	if parameter.Kind() == types.TypeParamKind {
		return true
	}
	if parameter.Kind() != t.Kind() || len(parameter.Parameters()) != len(t.Parameters()) {
		return false
	}
	for i, inner := range parameter.Parameters() {
		if !fits(inner, t.Parameters()[i]) {
			return false
		}
	}
	return true
}

// Expression makes an expression around a call, from any bytes. It need not compile, and
// there is none, "", if a parameter is of a type that nothing makes.
func (c *Calls) Expression(call *Call, genome []byte) string {
	g := &generator{calls: c, genome: genome}
	text, ok := g.root(call)
	if !ok || len(text) > 2*mostLength {
		return ""
	}
	return text
}
