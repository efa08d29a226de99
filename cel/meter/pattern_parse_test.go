// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What Go's parser of regular expressions takes from a tenth of a second to minutes for is
// refused before it sees it.
func TestPatternsThatTakeLongToParse(t *testing.T) {
	for name, text := range map[string]string{
		"begin alike":            strings.Repeat(strings.Repeat(".", 4900)+"b|", 2),
		"begin alike, in groups": "(" + strings.Repeat("(?:"+strings.Repeat(".a", 1000)+"|", 4) + "))))",
		"counted":                strings.Repeat(strings.Repeat("a{9}", 1000)+"b|", 2),
		"letters of all scripts": "(?i)" + strings.Repeat(`[B-𞥂]`, 10),
		"in one class":           "(?i)[" + strings.Repeat(`B-𞥂`, 10) + "]",
		"by their numbers":       "(?i)" + strings.Repeat(`[\x{41}-\x{1e900}]`, 10),
		"a flag among others":    "(?s-m:a)(?Us-i:" + strings.Repeat(`[B-𞥂]`, 10) + ")",
		"no such number":         "(?i)" + strings.Repeat(`[\x{41}-\x{zz}]`, 10),
		"classes":                "(?i)" + strings.Repeat(`[\PL]`, 60),
		"groups in groups":       strings.Repeat("(?:", 90) + strings.Repeat("^a", 5000) + strings.Repeat(")", 90),
		"quoted bracket":         `\Q[\E` + strings.Repeat(strings.Repeat(".", 4900)+"b|", 2),
	} {
		_, err := PatternOf(text)
		_, tooLarge := errors.AsType[*PatternError](err)
		require.True(t, tooLarge, "%s: %v", name, err)
	}
}

// What people write is far from taking long.
func TestPatternsThatPeopleWrite(t *testing.T) {
	names := make([]string, 300)
	for i := range names {
		names[i] = `node-` + strings.Repeat("x", 20) + `\.example\.com`
	}
	for _, text := range []string{
		`^(trn1|trn2|inf2)\.[0-9]*xlarge$`, `(?i)^nvidia[- ](a|h|b)\d{2,3}.*$`, `(?i)[à-ÿa-z0-9_-]+`,
		`^([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)*example\.com$`, `\p{L}[\p{L}\p{N}_-]*`, `(?i)\p{Greek}+`,
		`^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.|$)){4}`, strings.Join(names[:60], "|"), strings.Repeat("long literal text ", 500),
	} {
		of, err := PatternOf(text)
		require.NoError(t, err, text)
		require.Less(t, of.Parsing, MaxPatternParsing/1.0, text)
	}
}

// A pattern that is too large to be compiled has no limit: what it takes is that much, and not
// something that no comparison finds too large.
func TestPatternsWithoutLimitHaveNone(t *testing.T) {
	for _, function := range []string{"matches", "find", "findAll"} {
		for _, groups := range []float64{0, 1, maxGroups} {
			load := LoadOf(function, Call{Pattern: Pattern{Instructions: noLimit, Groups: groups}})
			require.GreaterOrEqual(t, load.Nanoseconds, float64(noLimit), function)
			require.GreaterOrEqual(t, load.Bytes, float64(noLimit), function)
		}
	}
}

// Loads are numbers, also where nothing is known of the operands.
func TestLoadsAreNumbers(t *testing.T) {
	sizes := []float64{0, 1, math.Inf(1)}
	for function := range loads {
		for _, first := range sizes {
			for _, second := range sizes {
				for _, result := range sizes {
					call := Call{First: Operand{Size: first, Deep: first}, Second: Operand{Size: second, Deep: second}, Result: result, Count: 2}
					load := LoadOf(function, call)
					require.GreaterOrEqual(t, load.Nanoseconds, 0.0, "%s: %+v", function, call)
					require.GreaterOrEqual(t, load.Bytes, 0.0, "%s: %+v", function, call)
				}
			}
		}
	}
}
