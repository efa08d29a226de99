// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"maps"
	"slices"
	"strings"
)

// updated returns the expectations, with the answer in place of the expectations that are not true. It returns false if the
// chosen objects don't satisfy the expression in satisfies, because no answer can replace an expression.
func (e *Expectations) updated(a *answer, failures []Failure) (*Expectations, bool) {
	fails := func(field string) bool {
		return slices.ContainsFunc(failures, func(f Failure) bool { return f.Field == "expect."+field })
	}
	result := *e
	if e.Steps != nil && fails("steps.atMost") {
		result.Steps = &Steps{AtMost: roundedUp(a.steps)}
	}
	switch {
	case a.of == ofDefinition:
		result.Errors = []string{}
		for _, message := range a.errors {
			first, _, _ := strings.Cut(strings.TrimSpace(message), "\n") // the other lines quote the expression
			result.Errors = append(result.Errors, oneLine(first))
		}
		return &result, true
	case len(a.reasons) > 0:
		return &Expectations{None: essence(a.reasons[0]), Steps: result.Steps}, true
	case fails("satisfies"):
		return nil, false
	}
	isNew := e.isEmpty() || e.None != ""
	result.None = ""
	switch a.of {
	case ofGroup:
		replace(&result.Nodes, a.nodes, isNew)
	case ofPlacement:
		replace(&result.Clusters, a.clusters, isNew)
	default:
		replace(&result.Devices, names(a.devices), isNew)
		replace(&result.NodesThatFit, a.fitting, false)
		result.Requests = maps.Clone(e.Requests)
		for request := range result.Requests {
			if fails("requests." + request) {
				result.Requests[request] = names(a.ofRequest(request))
			}
		}
	}
	return &result, true
}

// essence returns the first part of a reason, without the name of the node and the text of the expression. The other parts name
// claims.
func essence(reason string) string {
	if rest, found := strings.CutPrefix(reason, "node "); found {
		if _, text, found := strings.Cut(rest, ": "); found {
			reason = text
		}
	}
	first, _, _ := strings.Cut(oneLine(reason), "; ")
	first, _, _ = strings.Cut(first, ", line ")
	return first
}

// replace replaces a list if the names in the two lists differ. It ignores drivers and pools in front of names. It replaces an
// absent list only if isNew is set.
func replace(list *[]string, by []string, isNew bool) {
	if *list == nil && !isNew {
		return
	}
	shortened := func(names []string) []string {
		short := make([]string, len(names))
		for i, name := range names {
			short[i] = name[strings.LastIndexByte(name, '/')+1:]
		}
		slices.Sort(short)
		return short
	}
	if *list == nil || !slices.Equal(shortened(*list), shortened(by)) {
		*list = slices.Clone(by)
	}
}

// roundedUp rounds up to 1, 2, 5, 10, 20 and so on, so that small changes of the search don't change the file.
func roundedUp(steps int64) int64 {
	for size := int64(1); ; size *= 10 {
		for _, times := range []int64{1, 2, 5} {
			if steps <= times*size {
				return times * size
			}
		}
	}
}
