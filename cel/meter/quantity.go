// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// An amount with an exponent is kept as it is written until it is compared, and then all of
// its digits are computed: 1e2000000000 has two billion.

// exponentMargin is the largest exponent that is computed with, besides the digits that are
// written. Kubernetes reads amounts of resources up to 2^63, and rounds what is finer than
// 10^-9: amounts that are larger than this are all the same.
const exponentMargin = 128

// clampQuantity replaces the text of a quantity by one with a small exponent.
func clampQuantity(_ *call, values []ref.Val) ref.Val {
	if text, ok := values[0].(types.String); ok {
		if clamped, changed := ClampExponent(string(text)); changed {
			values[0] = types.String(clamped)
		}
	}
	return nil
}

// ClampExponent returns the text of a quantity with an exponent that can be computed with. The
// value is the same, unless it is so large that no amount of anything is. The second
// result reports whether it is another text. What is no quantity stays none.
func ClampExponent(text string) (string, bool) {
	at := strings.IndexAny(text, "eE")
	if at < 0 || at == len(text)-1 {
		return text, false
	}
	exponent, err := strconv.ParseInt(text[at+1:], 10, 64)
	if err != nil {
		return text, false
	}
	// Kubernetes keeps 32 bits of it.
	value, limit := int64(int32(exponent)), int64(at+exponentMargin)
	if value >= -limit && value <= limit {
		return text, false
	}
	if value < 0 {
		limit = -limit
	}
	return text[:at+1] + strconv.FormatInt(limit, 10), true
}
