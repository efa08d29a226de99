// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Ratcheted returns the verdict on an update. before is the verdict on the stored object, and after the verdict on the new
// object. Mistakes that the stored object also has become warnings. Warnings that the stored object also has are omitted.
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

// indices matches list indices. identity removes them from paths, so that inserting another list element does not make a
// mistake new.
var indices = regexp.MustCompile(`\[\d+\]`)

// identity returns a text that is equal for the same mistake in two versions of an object. The text has the failed expression,
// so that a mistake in a changed expression counts as new.
func (v *Verdict) identity(err *field.Error) string {
	return indices.ReplaceAllString(fmt.Sprintf("%s %s %v %s", err.Type, err.Field, err.BadValue, err.Detail), "[]") + v.expressions[err].text
}
