// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Ratcheted returns the verdict on an update, given the verdicts on the stored and the new object. Mistakes that the stored
// object also has become warnings. Warnings about the stored object are not repeated.
func Ratcheted(before, after Verdict) Verdict {
	result := Verdict{Undecided: after.Undecided}
	stored := map[string]int{}
	for _, err := range before.Errors {
		stored[before.identity(err)]++
	}
	for _, text := range after.Warnings {
		if !slices.Contains(before.Warnings, text) {
			result.Warnings = append(result.Warnings, text)
		}
	}
	for _, err := range after.Errors {
		if stored[after.identity(err)] == 0 {
			result.Errors = append(result.Errors, err)
			continue
		}
		stored[after.identity(err)]--
		result.Warnings = append(result.Warnings, oneLine("the stored object already has this mistake: "+err.Error()))
	}
	return result
}

// indices matches list indices. identity removes them, because inserting an element elsewhere in the list is no new mistake.
var indices = regexp.MustCompile(`\[\d+\]`)

// identity returns a text that identifies a mistake. The text includes the failed expression, so a mistake in a changed
// expression counts as new.
func (v *Verdict) identity(err *field.Error) string {
	return indices.ReplaceAllString(fmt.Sprintf("%s %s %v %s", err.Type, err.Field, err.BadValue, err.Detail), "[]") + v.expressions[err].text
}
