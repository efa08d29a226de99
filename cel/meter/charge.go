// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// charge returns the CEL cost units of a call, based on its arguments and its result. If an argument failed, the call was not
// made, and result is the argument's error.
type charge func(values []ref.Val, result ref.Val) uint64

// chargeOf returns the charge of a call. It looks in the same places and order as cel-go: the overload costs of the libraries,
// the estimator, and CEL's overload costs.
func (b *builder) chargeOf(of interpreter.InterpretableCall, constant *pattern) charge {
	function, overload := of.Function(), of.OverloadID()
	if found, ok := listCharges[overload]; ok {
		return found
	}
	if found, ok := textCharges[overload]; ok && b.config.ChargesTexts {
		return found
	}
	otherwise := defaultCharge(overload)
	if constant != nil && isMatches(overload) {
		units := perCharacter(constant.characters)
		otherwise = func(o []ref.Val, _ ref.Val) uint64 { return traversed(1+sizeOf(o[0])) * units }
	}
	estimator, asCEL := b.config.Estimator, b.config.OperatorsAsCEL && isOperator(function)
	if estimator == nil || asCEL && function != operators.Equals {
		return otherwise
	}
	return func(values []ref.Val, result ref.Val) uint64 {
		if !asCEL || !isPlain(values[0]) {
			if cost := estimator.CallCost(function, overload, values, result); cost != nil {
				return *cost
			}
		}
		return otherwise(values, result)
	}
}

// isOperator reports whether a function is an operator. Only CEL defines the costs of operators.
func isOperator(function string) bool {
	return strings.HasPrefix(function, "_") || strings.HasPrefix(function, "@") || function == operators.LogicalNot || function == operators.Negate
}

// isPlain reports whether a value is a scalar of one of CEL's own types.
func isPlain(value ref.Val) bool {
	switch value.(type) {
	case types.Bool, types.Int, types.Uint, types.Double, types.String, types.Bytes, types.Duration, types.Timestamp, types.Null:
		return true
	default:
		return false
	}
}

func one([]ref.Val, ref.Val) uint64 { return 1 }

func defaultCharge(overload string) charge {
	switch overload {
	case overloads.StartsWithString, overloads.EndsWithString:
		return func(o []ref.Val, _ ref.Val) uint64 { return traversed(sizeOf(o[1])) }
	case overloads.StringToBytes, overloads.BytesToString, overloads.ExtQuoteString, overloads.ExtFormatString:
		return func(o []ref.Val, _ ref.Val) uint64 { return traversed(sizeOf(o[0])) }
	case overloads.InList:
		return func(o []ref.Val, _ ref.Val) uint64 { return sizeOf(o[1]) }
	case overloads.LessString, overloads.GreaterString, overloads.LessEqualsString, overloads.GreaterEqualsString,
		overloads.LessBytes, overloads.GreaterBytes, overloads.LessEqualsBytes, overloads.GreaterEqualsBytes,
		overloads.Equals, overloads.NotEquals:
		return func(o []ref.Val, _ ref.Val) uint64 { return traversed(smallerSize(o[0], o[1])) }
	case overloads.AddString, overloads.AddBytes:
		return func(o []ref.Val, _ ref.Val) uint64 { return traversed(sizeOf(o[0]) + sizeOf(o[1])) }
	case overloads.Matches, overloads.MatchesString:
		return func(o []ref.Val, _ ref.Val) uint64 {
			return traversed(1+sizeOf(o[0])) * perCharacter(sizeOf(o[1]))
		}
	case overloads.ContainsString:
		return func(o []ref.Val, _ ref.Val) uint64 { return traversed(sizeOf(o[0])) * traversed(sizeOf(o[1])) }
	default:
		return one
	}
}

func isMatches(overload string) bool {
	return overload == overloads.Matches || overload == overloads.MatchesString
}

// perCharacter returns the cost factor for matching a regular expression with this number of characters, per unit of traversing
// the text.
func perCharacter(characters uint64) uint64 {
	return uint64(math.Ceil(float64(characters) * common.RegexStringLengthCostFactor))
}

// traversed returns the cost of traversing a number of characters.
func traversed(size uint64) uint64 {
	return uint64(math.Ceil(float64(size) * common.StringTraversalCostFactor))
}

// sizeOf returns the number of characters of a text, elements of a list or entries of a map. It returns 1 for other values.
func sizeOf(value ref.Val) uint64 {
	switch value := value.(type) {
	case types.String:
		return uint64(utf8.RuneCountInString(string(value)))
	case traits.Sizer:
		return uint64(value.Size().(types.Int))
	case *types.Optional:
		if value.HasValue() {
			return sizeOf(value.GetValue())
		}
	}
	return 1
}

// smallerSize returns the smaller of two sizes. If one text is short, it does not count the characters of a long text.
func smallerSize(a, b ref.Val) uint64 {
	first, isText := a.(types.String)
	second, areTexts := b.(types.String)
	if !isText || !areTexts {
		return min(sizeOf(a), sizeOf(b))
	}
	if len(first) > len(second) {
		first, second = second, first
	}
	count := utf8.RuneCountInString(string(first))
	if count > len(second)/utf8.UTFMax {
		count = min(count, utf8.RuneCountInString(string(second)))
	}
	return uint64(count)
}

// listCharges and textCharges map overloads of cel-go's extension libraries to their charges. The strings library has charges
// only since its version 5.
var listCharges, textCharges = func() (lists, texts map[string]charge) {
	lists, texts = map[string]charge{}, map[string]charge{}
	add := func(to map[string]charge, by charge, overloads ...string) {
		for _, overload := range overloads {
			to[overload] = by
		}
	}
	comparesFirst := func(o []ref.Val, _ ref.Val) uint64 { return selfCompared(o[0]) }
	comparesSecond := func(o []ref.Val, _ ref.Val) uint64 { return selfCompared(o[1]) }
	add(lists, pairs(1), "list_sets_contains_list", "list_sets_intersects_list")
	add(lists, pairs(2), "list_sets_equivalent_list")
	add(lists, func(_ []ref.Val, result ref.Val) uint64 { return allocated(1, unwrappedSize(result)) },
		"list_slice", "lists_range", "list_reverse")
	add(lists, comparesFirst, "list_distinct")
	add(lists, flattened, "list_flatten", "list_flatten_int")
	for _, element := range []string{"int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp", "string", "bytes"} {
		add(lists, comparesFirst, "list_"+element+"_sort")
		add(lists, comparesSecond, "list_"+element+"_sortByAssociatedKeys")
	}
	add(texts, func(o []ref.Val, _ ref.Val) uint64 { return 2 + traversed(unwrappedSize(o[0])) }, "string_char_at_int")
	add(texts, func(o []ref.Val, _ ref.Val) uint64 {
		return 1 + traversed(unwrappedSize(o[0])*unwrappedSize(o[1]))
	}, "string_index_of_string", "string_index_of_string_int", "string_last_index_of_string", "string_last_index_of_string_int")
	add(texts, func(o []ref.Val, result ref.Val) uint64 {
		return 1 + traversed(unwrappedSize(o[0])) + unwrappedSize(result)
	}, "string_lower_ascii", "string_upper_ascii", "string_substring_int", "string_substring_int_int", "string_trim", "string_reverse")
	add(texts, func(o []ref.Val, result ref.Val) uint64 {
		return 1 + traversed(max(1, unwrappedSize(o[0]))*max(1, unwrappedSize(o[1]))) + unwrappedSize(result)
	}, "string_replace_string_string", "string_replace_string_string_int")
	add(texts, func(o []ref.Val, result ref.Val) uint64 {
		return 1 + traversed(unwrappedSize(o[0])+1) + unwrappedSize(result) + common.ListCreateBaseCost
	}, "string_split_string", "string_split_string_int")
	add(texts, func(o []ref.Val, result ref.Val) uint64 {
		return 1 + traversed(unwrappedSize(o[0])+1) + unwrappedSize(result)
	}, "list_join", "list_join_string")
	return lists, texts
}()

// unwrappedSize returns the size as sizeOf does, but does not unwrap optional values.
func unwrappedSize(value ref.Val) uint64 {
	if sizer, ok := value.(traits.Sizer); ok {
		return uint64(sizer.Size().(types.Int))
	}
	return 1
}

func pairs(times uint64) charge {
	return func(o []ref.Val, _ ref.Val) uint64 {
		return 1 + times*unwrappedSize(o[0])*unwrappedSize(o[1])
	}
}

// allocated returns the cost of a call that makes a list.
func allocated(factor float64, size uint64) uint64 {
	if factor < 0 {
		factor = 1
	}
	return uint64(float64(size)*factor) + 1 + common.ListCreateBaseCost
}

// selfCompared returns the cost of comparing each element of a list with each other element.
func selfCompared(value ref.Val) uint64 {
	list, ok := value.(traits.Lister)
	if !ok {
		return 1
	}
	size, factor := unwrappedSize(list), 2.0
	if size > 0 {
		if t := list.Get(types.IntZero).Type(); t == types.StringType || t == types.BytesType {
			factor += common.StringTraversalCostFactor
		}
	}
	return allocated(factor, size*size)
}

func flattened(o []ref.Val, _ ref.Val) uint64 {
	depth := 1.0
	if len(o) == 2 {
		if given, ok := o[1].(types.Int); ok {
			depth = float64(given)
		}
	}
	return allocated(depth, unwrappedSize(o[0]))
}
