// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"math"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

const noLimit = math.MaxFloat64

// mostValues is the maximum number of nested values that are counted. A value with more nested values contains some part many
// times, and calls that traverse it are rejected.
const mostValues = 1 << 18

// Operand is the size of an operand, or an upper bound of the size.
type Operand struct {
	// Size is the number of bytes of a text, elements of a list, or entries of a map.
	Size float64
	// Deep is the number of nested values, with the operand itself. A nested value counts once for each path to it, because
	// comparing and printing follow all paths. A text counts as one value per 64 bytes.
	Deep float64
	// Value is the absolute value of a number.
	Value float64
}

// BytesPerValue is the number of bytes of a text that count as one value in Operand.Deep.
const BytesPerValue = 64

func textDeep(length int) float64 { return 1 + float64(length)/BytesPerValue }

// operandOf returns the size of a value. It counts nested values only if deep is set.
func operandOf(value ref.Val, deep bool) Operand {
	switch value := value.(type) {
	case types.String:
		return Operand{Size: float64(len(value)), Deep: textDeep(len(value))}
	case types.Bytes:
		return Operand{Size: float64(len(value)), Deep: textDeep(len(value))}
	case types.Int:
		return Operand{Size: 1, Deep: 1, Value: math.Abs(float64(value))}
	case types.Uint:
		return Operand{Size: 1, Deep: 1, Value: float64(value)}
	case types.Double:
		return Operand{Size: 1, Deep: 1, Value: math.Abs(float64(value))}
	case apiservercel.Semver:
		size := 0
		for _, part := range value.Pre {
			size += 8 + len(part.VersionStr)
		}
		return Operand{Size: float64(size), Deep: textDeep(size)}
	case apiservercel.URL:
		size := len(value.Path) + len(value.RawPath) + len(value.RawQuery) + len(value.Host)
		return Operand{Size: float64(size), Deep: textDeep(size)}
	case traits.Sizer:
		result := Operand{Size: float64(value.Size().(types.Int)), Deep: 1}
		if deep {
			result.Deep = counted(value.(ref.Val))
		}
		return result
	case *types.Optional:
		if value.HasValue() {
			return operandOf(value.GetValue(), deep)
		}
	}
	return Operand{Size: 1, Deep: 1}
}

// isContainer reports whether a value may contain other values.
func isContainer(value ref.Val) bool {
	switch value.(type) {
	case types.String, types.Bytes:
		return false
	case traits.Sizer, *types.Optional:
		return true
	default:
		return false
	}
}

// counted returns the number of nested values. It returns noLimit if there are more than mostValues.
func counted(value ref.Val) float64 {
	if count := valuesIn(value, mostValues); count <= mostValues {
		return count
	}
	return noLimit
}

// valuesIn counts a value and the values nested in it, and stops above the limit. A list may contain the same list many times,
// so there may be more values than bytes.
func valuesIn(value ref.Val, limit float64) float64 {
	count := 1.0
	switch value := value.(type) {
	case types.String:
		return textDeep(len(value))
	case types.Bytes:
		return textDeep(len(value))
	case traits.Lister:
		for it := value.Iterator(); it.HasNext() == types.True && count <= limit; {
			count += valuesIn(it.Next(), limit-count)
		}
	case traits.Mapper:
		for it := value.Iterator(); it.HasNext() == types.True && count <= limit; {
			key := it.Next()
			count += valuesIn(key, limit-count)
			if entry, found := value.Find(key); found && count <= limit {
				count += valuesIn(entry, limit-count)
			}
		}
	case *types.Optional:
		if value.HasValue() {
			count += valuesIn(value.GetValue(), limit-count)
		}
	}
	return count
}

// loader computes the load of a call from the values of its operands.
type loader func(*account, *call, []ref.Val) Load

// loaderOf returns the loader of a function. It returns nil if the function takes no longer than its CEL cost.
func (b *builder) loaderOf(function string) loader {
	is, listed := loads[function]
	switch {
	case function == operators.Add:
		return adding
	case function == operators.Equals || function == operators.NotEquals:
		return comparing
	case listed && is.load == nil:
		return nil
	case listed:
		return func(a *account, c *call, values []ref.Val) Load { return is.load(callOf(a, c, values, is)) }
	default:
		return func(a *account, c *call, values []ref.Val) Load {
			if b.loads != nil {
				if load, ok := b.loads.CallLoad(function, values); ok {
					return load
				}
			}
			return unknownLoad(callOf(a, c, values, everything))
		}
	}
}

var everything = functionLoad{deep: [2]bool{true, true}}

// callOf returns the properties that determine the load of a call with these operands.
func callOf(a *account, c *call, values []ref.Val, is functionLoad) *Call {
	result := &a.call
	*result = Call{}
	if len(values) > 0 {
		result.First = operandOf(values[0], is.deep[0])
		if _, inPlace := values[0].(traits.MutableMapper); inPlace && c.Function() == "cel.@mapInsert" {
			result.First = Operand{} // The map is changed in place.
		}
	}
	if len(values) > 1 {
		if zone, ok := values[1].(types.String); ok && is.zoned {
			result.NoZone = isCachedZone(string(zone))
		}
		// "value in list" with a scalar value does not traverse the contents of the elements.
		into := is.deep[1] && (c.Function() != operators.In || !isPlain(values[0]))
		result.Second = operandOf(values[1], into)
		if !into {
			result.Second.Deep = noLimit
		}
	}
	if len(values) > 2 {
		result.Third = operandOf(values[2], is.deep[1])
	}
	if is.result != nil {
		result.Result = is.result(values, a.bytesLeft())
	}
	if isMatching(c.Function()) {
		result.Pattern, result.Compiled = c.patternOf(values)
	}
	return result
}

// adding is the loader of "+", by far the most frequent call. Adding numbers is free. If a macro builds a list, "+" copies only
// the appended elements.
func adding(_ *account, _ *call, values []ref.Val) Load {
	switch first := values[0].(type) {
	case types.String:
		second, _ := values[1].(types.String)
		return addedTexts(len(first) + len(second))
	case types.Bytes:
		second, _ := values[1].(types.Bytes)
		return addedTexts(len(first) + len(second))
	case traits.Lister:
		second, ok := values[1].(traits.Lister)
		if !ok {
			return Load{}
		}
		total := float64(second.Size().(types.Int))
		if _, inPlace := first.(traits.MutableLister); !inPlace {
			total += float64(first.Size().(types.Int))
		}
		return appending(total)
	default:
		return Load{}
	}
}

func addedTexts(length int) Load {
	return Load{40 + float64(length)/4, float64(length)}
}

// comparing is the loader of "==" and "!=". Comparing is free unless both values are containers.
func comparing(_ *account, _ *call, values []ref.Val) Load {
	if !isContainer(values[0]) || !isContainer(values[1]) {
		return Load{}
	}
	of := Call{First: Operand{Deep: counted(values[0])}, Second: Operand{Deep: noLimit}}
	if of.First.Deep > BytesPerValue {
		of.Second.Deep = counted(values[1])
	}
	return equalling(&of)
}
