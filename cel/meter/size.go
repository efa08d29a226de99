// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"math"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// decimals returns 1 if a quantity becomes a decimal of arbitrary size. It returns 0 if an int64 is enough, as for most
// quantities.
func decimals(values []ref.Val, _ float64) float64 {
	text, ok := values[0].(types.String)
	if ok && (len(text) > 18 || strings.Contains(string(text), ".") && strings.HasSuffix(string(text), "i")) {
		return 1
	}
	return 0
}

// replacedSize returns the length of a text after a replacement.
func replacedSize(values []ref.Val, _ float64) float64 {
	text, ok := values[0].(types.String)
	if !ok || len(values) < 3 {
		return 0
	}
	old, _ := values[1].(types.String)
	by, _ := values[2].(types.String)
	growth := float64(len(by) - len(old))
	if growth <= 0 {
		return float64(len(text))
	}
	count := strings.Count(string(text), string(old))
	if len(values) == 4 {
		if limit, ok := values[3].(types.Int); ok && limit >= 0 {
			count = min(count, int(min(limit, math.MaxInt32)))
		}
	}
	return float64(len(text)) + float64(count)*growth
}

// splitSize returns the number of parts that split() returns.
func splitSize(values []ref.Val, _ float64) float64 {
	text, ok := values[0].(types.String)
	if !ok {
		return 0
	}
	by, _ := values[1].(types.String)
	return float64(strings.Count(string(text), string(by)) + 1)
}

// joinedSize returns the total length of the texts of a list and the separators between them.
func joinedSize(values []ref.Val, limit float64) float64 {
	list, ok := values[0].(traits.Lister)
	if !ok {
		return 0
	}
	var separator types.String
	if len(values) > 1 {
		separator, _ = values[1].(types.String)
	}
	var size float64
	for it := list.Iterator(); it.HasNext() == types.True && size <= limit; {
		text, _ := it.Next().(types.String)
		size += float64(len(text) + len(separator))
	}
	return size
}

// formattedSize returns an upper bound of the length of a formatted text.
func formattedSize(values []ref.Val, _ float64) float64 {
	format, ok := values[0].(types.String)
	if !ok {
		return 0
	}
	return FormattedSize(string(format), counted(values[1]))
}

// FormattedSize returns an upper bound of the length of a text with a number of formatted values. A number takes at most 400
// characters plus its precision.
func FormattedSize(format string, values float64) float64 {
	const longest, perValue = 400, 6 * BytesPerValue
	size := float64(len(format)) + perValue*values
	number := 0.0
	for _, c := range format {
		if c >= '0' && c <= '9' {
			number = 10*number + float64(c-'0')
			continue
		}
		if c == '%' {
			size += longest
		}
		size += number
		number = 0
	}
	return size
}

// flattenedSize returns the number of elements of a list after flatten() has replaced nested lists by their elements.
func flattenedSize(values []ref.Val, _ float64) float64 {
	depth := types.Int(1)
	if len(values) > 1 {
		if given, ok := values[1].(types.Int); ok {
			depth = given
		}
	}
	return dissolved(values[0], depth, mostValues)
}

func dissolved(value ref.Val, depth types.Int, limit float64) float64 {
	list, ok := value.(traits.Lister)
	if !ok || depth < 0 {
		return 1
	}
	count := 1.0
	for it := list.Iterator(); it.HasNext() == types.True && count <= limit; {
		count += dissolved(it.Next(), depth-1, limit-count)
	}
	return count
}
