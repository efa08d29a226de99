// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Ratcheted is the verdict on an update, given those on the stored object and on the new
// one: mistakes that were there before are warnings, and warnings that were there before
// are not repeated.
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
		result.Warnings = append(result.Warnings, oneLine("was wrong before: "+err.Error()))
	}
	return result
}

// places are indices of lists: a mistake stays the same if its list gets longer.
var places = regexp.MustCompile(`\[\d+\]`)

// identity of a mistake. One in an expression is another as soon as the expression is.
func (v *Verdict) identity(err *field.Error) string {
	return places.ReplaceAllString(fmt.Sprintf("%s %s %v %s", err.Type, err.Field, err.BadValue, err.Detail), "[]") + v.expressions[err].text
}
