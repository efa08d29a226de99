// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"strconv"
	"strings"
)

// Details are what is to be said of one Allocate call besides its results.
type Details struct {
	Stats
	// Outcome tells how good the results are. It is empty unless a preference is about a device of
	// them.
	Outcome PreferenceOutcome
	// Preferences are the values of the results, in the order of the preferences: those of the first
	// claim, in the order in which they are defined, those of the next. The greater the first of them
	// that differ, the better, on this node or on another. A preference that is about no device of the
	// results has none, and so have those to which the search did not come because the budget was used
	// up.
	Preferences []PreferenceValue
}

// PreferenceValue is what a preference says of the devices that were chosen.
type PreferenceValue struct {
	// Claim is the place of the claim among those that were allocated.
	Claim int
	// Preference is its place among those that are about the claim. Two of one class, for two
	// requests, have the same name.
	Preference int
	// Name is that of the preference, with its class if it is defined there.
	Name string
	// Value is that of the expression. Of a policy it is 0 if nothing is lost, and less the more is.
	Value int64
	// Losses are what the policy KeepWhole counted, most devices first. nil for an expression.
	Losses []ShapeLoss
}

// String is the value, or for a policy what it stands for.
func (v PreferenceValue) String() string { return DescribeValue(v.Value, v.Losses) }

// DescribeValue is [PreferenceValue.String] for what was copied from one.
func DescribeValue(value int64, losses []ShapeLoss) string {
	if len(losses) == 0 {
		return strconv.FormatInt(value, 10)
	}
	texts := make([]string, len(losses))
	for i, l := range losses {
		texts[i] = fmt.Sprintf("%d of %d sets of %d (constraint %s of class %s)", l.Lost, l.Lost+l.Left, l.Count, l.Constraint, l.Class)
	}
	return "breaks " + strings.Join(texts, ", ")
}

// ShapeLoss is what the chosen devices mean for others.
type ShapeLoss struct {
	Shape `json:",inline"`
	// Lost is how many sets of the shape can't be had any more because of them, Left how many still can.
	Lost int `json:"lost"`
	Left int `json:"left"`
}
