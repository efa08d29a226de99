// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package library

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// inSegments implements list.segments(size, x, key), given the keys of all elements.
func inSegments(keys, size ref.Val) ref.Val {
	length, ok := size.(types.Int)
	if !ok {
		return types.MaybeNoSuchOverloadErr(size)
	}
	if length < 1 {
		return types.NewErr("segments has a size of %d: use one or more", length)
	}
	counts := map[string]int64{}
	var k keyed
	failure := each(keys, func(value ref.Val) ref.Val {
		if k.text = k.text[:0]; !k.add(value) {
			return types.WrapErr(errorOfKey(value))
		}
		counts[string(k.text)]++
		return nil
	})
	if failure != nil {
		return failure
	}
	return types.Bool(AreSegments(counts, int64(length)))
}

// AreSegments reports whether elements can be divided into segments of the size with one key in each segment. If the size does
// not divide the number of elements, exactly one segment is smaller. counts holds the number of elements with each key.
func AreSegments(counts map[string]int64, size int64) bool {
	total := int64(0)
	for _, count := range counts {
		total += count
	}
	rest, ends := total%size, 0
	for _, count := range counts {
		switch count % size {
		case 0:
		case rest:
			ends++
		default:
			return false
		}
	}
	return rest == 0 || ends == 1
}

// KeyOf returns a text for the key of an element, or the error of the function segments for a value that can't be a key. Two texts
// are equal if CEL's == is true for the keys. The texts of NaN are equal, although NaN is not equal to itself.
func KeyOf(value ref.Val) (text string, err error) {
	var k keyed
	if !k.add(value) {
		return "", errorOfKey(value)
	}
	return string(k.text), nil
}

func errorOfKey(value ref.Val) error {
	return fmt.Errorf("segments has a key of type %s: use a bool, a number, a string, bytes, or a list of them", value.Type().TypeName())
}

// A keyed writes keys as text. Each value begins with a letter for its type, and a text or list has its length in front, so that
// different lists never have the same text.
type keyed struct {
	text []byte
	// nans counts the values that are NaN. Each of them gets a text of its own.
	nans uint64
}

// add appends the text of a value. It returns false for a type that can't be a key.
func (k *keyed) add(value ref.Val) bool {
	switch value := value.(type) {
	case types.Bool:
		if value {
			k.number('b', 1)
		} else {
			k.number('b', 0)
		}
	case types.Int:
		k.number('i', uint64(value))
	case types.Uint:
		k.unsigned(uint64(value))
	case types.Double:
		k.double(float64(value))
	case types.String:
		k.number('s', uint64(len(value)))
		k.text = append(k.text, value...)
	case types.Bytes:
		k.number('x', uint64(len(value)))
		k.text = append(k.text, value...)
	case traits.Lister:
		length, ok := value.Size().(types.Int)
		k.number('l', uint64(length))
		return ok && each(value, func(element ref.Val) ref.Val {
			if !k.add(element) {
				return types.False
			}
			return nil
		}) == nil
	default:
		return false
	}
	return true
}

func (k *keyed) number(kind byte, n uint64) {
	k.text = binary.BigEndian.AppendUint64(append(k.text, kind), n)
}

// unsigned appends an unsigned number. A number that is also an int has the text of the int.
func (k *keyed) unsigned(n uint64) {
	if n <= math.MaxInt64 {
		k.number('i', n)
	} else {
		k.number('u', n)
	}
}

// double appends a double. A whole number has the text of the int or uint.
func (k *keyed) double(n float64) {
	switch {
	case math.IsNaN(n):
		k.nans++
		k.number('n', k.nans)
	case n != math.Trunc(n):
		k.number('d', math.Float64bits(n))
	case n >= math.MinInt64 && n < 0:
		k.number('i', uint64(int64(n)))
	case n >= 0 && n < math.MaxUint64:
		k.unsigned(uint64(n))
	default:
		k.number('d', math.Float64bits(n))
	}
}
