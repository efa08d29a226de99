// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"math"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

const noLimit = math.MaxFloat64

// mostValues is how many values in a value are counted. What has more has a part many
// times: no call goes through it.
const mostValues = 1 << 18

// Operand says how large an operand of a call is, or at most is.
type Operand struct {
	// Size is the number of bytes of a text, of elements of a list, of entries of a map.
	Size float64
	// Deep is the number of values in it, itself included, counted as often as they can be
	// reached: comparing or printing goes through all of them. A text counts as one value
	// for each 64 bytes.
	Deep float64
	// Value is that of a number, without its sign.
	Value float64
}

// BytesPerValue is how long a text is that counts as one value.
const BytesPerValue = 64

func textDeep(length int) float64 { return 1 + float64(length)/BytesPerValue }

// operandOf looks at a value. Deep is counted if that is asked for.
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

// isContainer reports whether a value may have others in it.
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

// counted is valuesIn, or more than any call may go through if they are too many.
func counted(value ref.Val) float64 {
	if count := valuesIn(value, mostValues); count <= mostValues {
		return count
	}
	return noLimit
}

// valuesIn counts the values in a value, itself included, and stops when they are more
// than the limit. A list may have the same list in it many times, so that there are more
// values than bytes.
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
