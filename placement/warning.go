// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strings"
)

const (
	// ReasonScoreExpired says that AddOnPlacementScores of candidates are expired.
	ReasonScoreExpired = "ScoreExpired"
	// ReasonScoreOutOfRange says that scores of candidates were clamped.
	ReasonScoreOutOfRange = "ScoreOutOfRange"
	// ReasonAmountOutOfRange says that amounts of candidates can't be true.
	ReasonAmountOutOfRange = "AmountOutOfRange"
)

// Warning is something that does not keep a Placement from being decided: an event.
type Warning struct {
	// Reason is ReasonScoreExpired, ReasonScoreOutOfRange or ReasonAmountOutOfRange.
	Reason string
	// Plugin is the prioritizer it is about.
	Plugin string
	// Message names the first few objects.
	Message string
}

// warn adds a warning about subjects, if there are any. format has a %s for them.
func (r *report) warn(reason, plugin, format string, subjects []string) {
	if len(subjects) > 0 {
		r.result.Warnings = append(r.result.Warnings, Warning{reason, plugin, fmt.Sprintf(format, firstOf(subjects))})
	}
}

// outOfRange warns about subjects with values that are out of their range, and counts
// them.
func (r *report) outOfRange(reason, plugin, format string, subjects []string) {
	r.warn(reason, plugin, format, subjects)
	if len(subjects) > 0 {
		if r.result.OutOfRange == nil {
			r.result.OutOfRange = map[string]int{}
		}
		r.result.OutOfRange[plugin] += len(subjects)
	}
}

// named is how many of many things messages name.
const named = 3

// firstOf names the first few of many things and counts the others.
func firstOf(names []string) string {
	if len(names) <= named {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:named], ", "), len(names)-named)
}
