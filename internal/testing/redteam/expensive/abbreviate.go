// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package expensive

import (
	"fmt"
	"strings"
)

const (
	// longestPeriod is the longest text that is looked for again behind itself.
	longestPeriod = 80
	// leastRepeated is how long a repetition is that is worth abbreviating.
	leastRepeated = 24
)

// Abbreviate writes repetitions in an expression as how often what stands there, so that
// somebody can read it: 'aaaa…' becomes '«a»4000'.
func Abbreviate(expression string) string {
	var text strings.Builder
	for len(expression) > 0 {
		period, times := repetition(expression)
		if times == 1 {
			text.WriteByte(expression[0])
			expression = expression[1:]
			continue
		}
		fmt.Fprintf(&text, "«%s»%d", expression[:period], times)
		expression = expression[period*times:]
	}
	return text.String()
}

// repetition finds the shortest text that the expression begins with more than once, and
// how often; once if that is not worth it.
func repetition(expression string) (period, times int) {
	for period = 1; period <= min(longestPeriod, len(expression)/2); period++ {
		times = 1
		for strings.HasPrefix(expression[period*times:], expression[:period]) {
			times++
		}
		if times > 1 && period*times >= leastRepeated {
			return period, times
		}
	}
	return 1, 1
}
