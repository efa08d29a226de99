// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

const nanoseconds = int64(1_000_000_000)

// exact is a timestamp as the time since 1970, or a duration. It has room for differences
// that a duration has none for.
type exact struct {
	seconds int64
	// nanos are from 0 to 999,999,999.
	nanos int64
}

// exactOf is the value of a timestamp or a duration.
func exactOf(value ref.Val) (exact, bool) {
	switch value := value.(type) {
	case types.Timestamp:
		return exact{value.Unix(), int64(value.Nanosecond())}, true
	case types.Duration:
		nanos := floorMod(int64(value.Duration), nanoseconds)
		seconds := int64(value.Duration) / nanoseconds
		if int64(value.Duration) < 0 && nanos > 0 {
			seconds--
		}
		return exact{seconds, nanos}, true
	default:
		return exact{}, false
	}
}

func (e exact) plus(other exact) exact {
	result := exact{e.seconds + other.seconds, e.nanos + other.nanos}
	if result.nanos >= nanoseconds {
		result.seconds, result.nanos = result.seconds+1, result.nanos-nanoseconds
	}
	return result
}

func (e exact) negated() exact {
	if e.nanos == 0 {
		return exact{-e.seconds, 0}
	}
	return exact{-e.seconds - 1, nanoseconds - e.nanos}
}

func (e exact) minus(other exact) exact { return e.plus(other.negated()) }

// sign is -1, 0 or 1.
func (e exact) sign() int {
	switch {
	case e.seconds < 0:
		return -1
	case e.seconds > 0 || e.nanos > 0:
		return 1
	default:
		return 0
	}
}
