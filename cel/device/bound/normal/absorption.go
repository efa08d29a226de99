// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package normal

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/cel/device/library"
	"github.com/celset/celset/cel/tree"
)

// Bounds rely on "false && error" being false, but CEL does not absorb all errors. Some functions panic if an argument has
// failed or has an unexpected type, and then the evaluation of the whole expression fails. So an expression has bounds only if
// every part is safe. A part is safe if its functions are known to return errors (absorbed), or if it is checked for each
// device first (propagate.Guard).

// absorbed has the functions that return errors and never panic, for any operands. A test checks all functions of the
// environment.
var absorbed = sets.New(
	operators.Conditional, operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot,
	operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
	operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate,
	operators.Index, operators.OptIndex, operators.OptSelect, operators.NotStrictlyFalse,
	// Conversions.
	"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint",
	// Strings.
	"charAt", "contains", "endsWith", "find", "findAll", "format", "join", "lowerAscii", "matches", "replace", "split",
	"startsWith", "strings.quote", "substring", "trim", "upperAscii",
	// Lists and maps. Some of the functions also work on strings.
	"cel.@mapInsert", "first", "includes", "indexOf", "isSorted", "last", "lastIndexOf", "max", "min", "reverse",
	"sets.contains", "sets.equivalent", "sets.intersects", "size", "slice", "sum", "distinct", "sort", "@sortByAssociatedKeys",
	// Numbers.
	"math.@max", "math.@min", "math.abs", "math.bitAnd", "math.bitNot", "math.bitOr", "math.bitShiftLeft", "math.bitShiftRight", "math.bitXor",
	"math.ceil", "math.floor", "math.isFinite", "math.isInf", "math.isNaN", "math.round", "math.sign", "math.sqrt", "math.trunc",
	// Relations between devices, from package library.
	library.Connected, library.Clique, library.Ring, library.Path, library.Paired, library.Box, library.Segments,
	library.SameOrIncludes,
	// Optional values.
	"hasValue", "optional.none", "optional.of", "optional.ofNonZeroValue", "optional.unwrap", "or", "orValue", "unwrapOpt", "value",
	// Quantities and versions.
	"add", "asApproximateFloat", "asInteger", "compareTo", "isGreaterThan", "isInteger", "isLessThan", "isQuantity", "isSemver",
	"major", "minor", "patch", "quantity", "semver", "sign", "sub",
	// Times.
	"getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds", "getMinutes",
	"getMonth", "getSeconds",
	// Addresses.
	"cidr", "containsCIDR", "containsIP", "family", "getEscapedPath", "getHost", "getHostname", "getPort", "getQuery", "getScheme",
	"ip", "ip.isCanonical", "isCIDR", "isGlobalUnicast", "isIP", "isLinkLocalMulticast", "isLinkLocalUnicast", "isLoopback", "isURL",
	"isUnspecified", "masked", "prefixLength", "url",
	// Formats.
	"format.byte", "format.date", "format.datetime", "format.dns1035Label", "format.dns1035LabelPrefix", "format.dns1123Label",
	"format.dns1123LabelPrefix", "format.dns1123Subdomain", "format.dns1123SubdomainPrefix", "format.labelValue", "format.named",
	"format.qualifiedName", "format.uri", "format.uuid", "validate",
)

// mayAbort reports whether an operation may abort the evaluation of the whole expression. Its operands are not checked.
func (n *Normalizer) mayAbort(expr ast.Expr) bool {
	switch expr.Kind() {
	case ast.StructKind:
		return true
	case ast.MapKind:
		for _, entry := range expr.AsMap().Entries() {
			if !n.isHashable(entry.AsMapEntry().Key()) {
				return true
			}
		}
		return false
	case ast.CallKind:
		call := expr.AsCall()
		if call.FunctionName() == operators.In {
			return !n.isHashable(call.Args()[0]) && !n.isComputedList(call.Args()[1])
		}
		_, isRange := rangeOf(expr)
		return !isRange && !absorbed.Has(call.FunctionName())
	default:
		return false
	}
}

// isHashable reports whether a value surely has a type that works as a map key. CEL panics for other keys, such as versions.
func (n *Normalizer) isHashable(expr ast.Expr) bool {
	if expr.Kind() == ast.CallKind {
		switch call := expr.AsCall(); call.FunctionName() {
		case operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate, "sum":
			return true // numbers, times or durations
		case operators.Add:
			return n.isHashable(call.Args()[0]) || n.isHashable(call.Args()[1])
		}
	}
	switch n.Write.TypeOf(expr).Kind() {
	case types.IntKind, types.UintKind, types.DoubleKind, types.BoolKind, types.StringKind:
		return true
	default:
		return false
	}
}

// MayBeInt reports whether a value is an int or has a type that is only known at run time. It returns false for nil.
func (n *Normalizer) MayBeInt(expr ast.Expr) bool {
	if expr == nil {
		return false
	}
	t := n.Write.TypeOf(expr).Kind()
	return t == types.IntKind || t == types.DynKind
}

// isComputedList recognizes lists whose elements CEL compares one by one for "in". CEL may turn a literal list into a lookup.
func (n *Normalizer) isComputedList(expr ast.Expr) bool {
	if expr.Kind() == ast.ListKind {
		return slices.ContainsFunc(expr.AsList().Elements(), func(e ast.Expr) bool {
			return e.Kind() == ast.ListKind || VariablesOf(e).Len() > 0
		})
	}
	return n.IsList(expr)
}

// Require adds the operations of a part that may abort to Unguarded, unless an operation has a guard.
func (n *Normalizer) Require(expr ast.Expr, s Scope) {
	tree.Visit(expr, func(e ast.Expr, hidden tree.Names) {
		if n.mayAbort(e) && !n.guard(e, s.without(hidden)) {
			n.Unguarded.Insert(e.ID())
		}
	})
}
