// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/internal/testing/transcript"
)

// TestPropagation has what is removed and required. All of it is compared with the completions.
func TestPropagation(t *testing.T) {
	e := environment(t)
	var all []*device.Device
	var s *sound
	transcript.Run(t, "testdata/propagation.txt", func(t *testing.T, input string) string {
		if spec, ok := strings.CutPrefix(input, "devices "); ok {
			all = specified(t, spec)
			return ""
		}
		if size, text, ok := strings.Cut(input, ": "); ok {
			if n, err := strconv.Atoi(size); err == nil {
				s = newSound(t, e, text, n, all)
				return ""
			}
		}
		chosen, possible, _ := strings.Cut(input[strings.LastIndex(input, ": ")+1:], "|")
		p := s.partial(listed(t, chosen), listed(t, possible))
		var results []string
		for _, effort := range []bound.Effort{bound.Quick, bound.Thorough} {
			infeasible, propagated := s.check(t, s.bounds(t), p, effort)
			result := ranges(propagated.Domain)
			switch {
			case infeasible:
				result = "infeasible"
			case !propagated.Forced.IsEmpty():
				result += ", required " + ranges(propagated.Forced)
			}
			results = append(results, result)
		}
		if results[0] == results[1] {
			return results[0]
		}
		return strings.Join(results, "; ")
	})
}

// specified makes devices of "x: 3 4", "grid 2 4", "ring 8" or "couples 3 2".
func specified(t *testing.T, spec string) []*device.Device {
	t.Helper()
	fields := strings.Fields(spec)
	var numbers []int64
	for _, field := range fields[1:] {
		n, err := strconv.ParseInt(field, 10, 64)
		require.NoError(t, err)
		numbers = append(numbers, n)
	}
	switch fields[0] {
	case "x:":
		return ranked(numbers...)
	case "grid":
		return grid(int(numbers[0]), int(numbers[1]))
	case "ring":
		return ring(int(numbers[0]))
	default:
		return couples(int(numbers[0]), int(numbers[1]))
	}
}

// ring has n devices, each joined to the next one by x and y.
func ring(n int) []*device.Device {
	var all []values
	for i := range n {
		all = append(all, values{"x": i, "y": (i + 1) % n})
	}
	return devicesWith(all...)
}

// couples has devices of two kinds, with numbers from 0 on.
func couples(a, b int) []*device.Device {
	var all []values
	for i := range a + b {
		if i < a {
			all = append(all, values{"x": i, "s": "a"})
		} else {
			all = append(all, values{"x": i - a, "s": "b"})
		}
	}
	return devicesWith(all...)
}

// listed reads positions as ranges writes them: "0,2-4".
func listed(t *testing.T, text string) []int {
	t.Helper()
	var result []int
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		require.NoError(t, err)
		last := first
		if isRange {
			last, err = strconv.Atoi(to)
			require.NoError(t, err)
		}
		for i := first; i <= last; i++ {
			result = append(result, i)
		}
	}
	return result
}

func ranges(set bitset.Set) string {
	var parts []string
	for i := set.Next(0); i >= 0; {
		last := i
		for set.Next(last+1) == last+1 {
			last++
		}
		switch last - i {
		case 0:
			parts = append(parts, fmt.Sprint(i))
		case 1:
			parts = append(parts, fmt.Sprint(i), fmt.Sprint(last))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", i, last))
		}
		i = set.Next(last + 1)
	}
	return strings.Join(parts, ",")
}
