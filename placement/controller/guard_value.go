// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"math"
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxValue is how long a value may be that is a time or a number.
const maxValue = 64

// maxQuantity is how long the text of an amount may be.
const maxQuantity = 40

var (
	// noQuantity is no amount of anything, which who reads it can see.
	noQuantity = []byte(`"-1"`)
	// noTime is so long ago that whatever lasts from it, or until it, has ended.
	noTime = []byte(`"1970-01-01T00:00:00Z"`)
	// noInteger is in place of what is no number at all.
	noInteger = []byte(`0`)
)

// quantities are those that are decoded at once: not the number of digits is what takes
// time, but an exponent.
var quantities = regexp.MustCompile(`^[+-]?[0-9.]+([EPTGMk]|[numKMGTPE]i?|[eE][+-]?[0-9]{1,2})?$`)

func acceptQuantity(value []byte) []byte {
	if isNull(value) {
		return value
	}
	text := bytes.TrimSuffix(bytes.TrimPrefix(value, []byte(`"`)), []byte(`"`))
	if len(text) > maxQuantity || !quantities.Match(text) {
		return noQuantity
	}
	if _, err := resource.ParseQuantity(string(text)); err != nil {
		return noQuantity
	}
	return value
}

func acceptTime(value []byte) []byte {
	var t metav1.Time
	if len(value) > maxValue || t.UnmarshalJSON(value) != nil {
		return noTime
	}
	return value
}

// acceptIntOrString accepts any text. One that is too long has been cut, and is a number, as
// the definitions of the kinds see to.
func acceptIntOrString(value []byte) []byte {
	switch {
	case value[0] != '"':
		return acceptInteger(value, 32)
	case len(value) > maxValue:
		return nearest(math.Inf(1), 32)
	default:
		return value
	}
}

// acceptInteger accepts what is a number of so many bits, without fraction and exponent.
func acceptInteger(value []byte, bits int) []byte {
	if isNull(value) {
		return value
	}
	if len(value) > maxValue {
		return noInteger
	}
	if _, err := strconv.ParseInt(string(value), 10, bits); err == nil {
		return value
	}
	number, err := strconv.ParseFloat(string(value), 64)
	if err != nil && number == 0 || number != number {
		return noInteger
	}
	return nearest(number, bits)
}

// nearest is the whole number of so many bits that is nearest to a number, towards zero.
func nearest(number float64, bits int) []byte {
	limit := math.Ldexp(1, bits-1)
	switch {
	case number >= limit:
		return strconv.AppendInt(nil, math.MaxInt64>>(64-bits), 10)
	case number <= -limit:
		return strconv.AppendInt(nil, math.MinInt64>>(64-bits), 10)
	default:
		return strconv.AppendInt(nil, int64(number), 10)
	}
}

func isNull(value []byte) bool { return string(value) == "null" }
