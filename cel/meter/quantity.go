// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Kubernetes stores a quantity with an exponent as it is written, but computes all digits when it compares the quantity. The
// quantity 1e2000000000 has two billion digits, so this file limits exponents.

// exponentMargin limits an exponent to the number of written digits plus this margin. Kubernetes reads amounts of resources up
// to 2^63, and rounds them to multiples of 10^-9. So a larger exponent makes no difference in a comparison with a real amount.
const exponentMargin = 128

// clampQuantity calls quantity() or isQuantity() with a text whose exponent is limited.
func clampQuantity(_ *call, values []ref.Val) ref.Val {
	if text, ok := values[0].(types.String); ok {
		if clamped, changed := ClampExponent(string(text)); changed {
			values[0] = types.String(clamped)
		}
	}
	return nil
}

// ClampExponent returns the text of a quantity with a bounded exponent. The value is the same, unless it is larger than any real
// amount. The second result reports whether the text changed. An invalid quantity stays invalid.
func ClampExponent(text string) (string, bool) {
	at := strings.IndexAny(text, "eE")
	if at < 0 || at == len(text)-1 {
		return text, false
	}
	exponent, err := strconv.ParseInt(text[at+1:], 10, 64)
	if err != nil {
		return text, false
	}
	// Kubernetes uses only the low 32 bits of the exponent.
	value, limit := int64(int32(exponent)), int64(at+exponentMargin)
	if value >= -limit && value <= limit {
		return text, false
	}
	if value < 0 {
		limit = -limit
	}
	return text[:at+1] + strconv.FormatInt(limit, 10), true
}
