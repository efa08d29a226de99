// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package library

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Macros expand to calls of these functions. Expressions can't contain names with "@". A relation expands to a matrix of bools:
// a list for each element, with a bool for every element. Coordinates expand to a list of ints for each element.
//
//	list.connected(a, b, joined)   @connected(list.map(a, list.map(b, joined)))
//	list.box(d, at, sides)         @box(list.map(d, at), sides)
//	list.paired(other, a, b, j)    @paired(list.map(a, other.map(b, j)), other.size())
//	list.segments(size, x, key)    @segments(list.map(x, key), size)
const (
	Connected = "@connected"
	Clique    = "@clique"
	Ring      = "@ring"
	Path      = "@path"
	Box       = "@box"
	Paired    = "@paired"
	Segments  = "@segments"
	// SameOrIncludes has no macro: expressions call it by this name.
	SameOrIncludes = "sameOrIncludes"
)

// Functions lists all functions.
var Functions = []string{Connected, Clique, Ring, Path, Box, Paired, Segments, SameOrIncludes}

// Options returns the declarations of the functions and their macros.
func Options() []cel.EnvOption {
	matrix := cel.ListType(cel.ListType(cel.BoolType))
	places, ints := cel.ListType(cel.ListType(cel.IntType)), cel.ListType(cel.IntType)
	options := []cel.EnvOption{
		cel.Macros(macros()...),
		cel.Function(Box,
			cel.Overload("list_box_list", []*cel.Type{places, ints}, cel.BoolType, cel.BinaryBinding(func(places, sides ref.Val) ref.Val {
				return inBox(places, sides, nil)
			})),
			cel.Overload("list_box_list_list", []*cel.Type{places, ints, ints}, cel.BoolType, cel.FunctionBinding(func(args ...ref.Val) ref.Val {
				return inBox(args[0], args[1], args[2])
			}))),
		cel.Function(Paired, cel.Overload("list_paired_int", []*cel.Type{matrix, cel.IntType}, cel.BoolType, cel.BinaryBinding(arePaired))),
		cel.Function(Segments, cel.Overload("list_segments_int", []*cel.Type{cel.ListType(cel.DynType), cel.IntType}, cel.BoolType,
			cel.BinaryBinding(inSegments))),
		cel.Function(SameOrIncludes, cel.MemberOverload("dyn_same_or_includes_dyn", []*cel.Type{cel.DynType, cel.DynType}, cel.BoolType,
			cel.BinaryBinding(sameOrIncludes))),
	}
	for name, holds := range map[string]func(Graph) bool{Connected: Graph.Connected, Clique: Graph.Clique} {
		options = append(options, onGraph(name, func(g Graph) ref.Val { return types.Bool(holds(g)) }))
	}
	for name, holds := range map[string]func(Graph) bool{Ring: Graph.Ring, Path: Graph.Path} {
		options = append(options, onGraph(name, func(g Graph) ref.Val {
			if g.Len() > MaxCircle {
				return types.NewErr("%s is called on %d elements, the limit is %d", name[1:], g.Len(), MaxCircle)
			}
			return types.Bool(holds(g))
		}))
	}
	return options
}

// onGraph declares a function whose argument is a relation between the elements of one list.
func onGraph(name string, holds func(Graph) ref.Val) cel.EnvOption {
	matrix := cel.ListType(cel.ListType(cel.BoolType))
	return cel.Function(name, cel.Overload("list_"+name[1:], []*cel.Type{matrix}, cel.BoolType, cel.UnaryBinding(func(value ref.Val) ref.Val {
		rows, failure := rowsOf(value)
		if failure != nil {
			return failure
		}
		g := NewGraph(len(rows))
		for a, row := range rows {
			if len(row) != len(rows) {
				return types.MaybeNoSuchOverloadErr(value)
			}
			for b, joined := range row {
				if joined {
					g.Join(a, b)
				}
			}
		}
		return holds(g)
	})))
}
