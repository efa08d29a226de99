// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"maps"
	"regexp"
	"slices"

	"github.com/google/cel-go/cel"

	"github.com/celset/celset/apis/nearest"
)

var (
	// undeclared matches CEL's error about an unknown name.
	undeclared = regexp.MustCompile(`^undeclared\sreference\sto\s'([A-Za-z_][A-Za-z0-9_]*)'`)
	identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// addNearest adds the most similar variable or function to errors about unknown names. It changes only mistakes that are
// printed.
func (e *Environment) addNearest(expression string, mistakes []*cel.Error) {
	if !e.namesNearest {
		return
	}
	for _, mistake := range mistakes[:min(len(mistakes), maxMistakes)] {
		found := undeclared.FindStringSubmatch(mistake.Message)
		if found == nil {
			continue
		}
		names := e.variableNames()
		if isCalled(expression, found[1]) {
			names = e.functionNames()
		}
		mistake.Message += nearest.DidYouMean("", found[1], slices.Values(names))
	}
}

// isCalled reports whether the expression has a parenthesis after the name.
func isCalled(expression, name string) bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\s*\(`).MatchString(expression)
}

func (e *Environment) variableNames() []string {
	var names []string
	for _, variable := range e.env.Variables() {
		names = append(names, variable.Name())
	}
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool { return !identifier.MatchString(name) })
}

// functionNames returns the names of functions and macros, without operators.
func (e *Environment) functionNames() []string {
	names := slices.Collect(maps.Keys(e.functions))
	for _, macro := range e.env.Macros() {
		names = append(names, macro.Function())
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return !identifier.MatchString(name) })
}
