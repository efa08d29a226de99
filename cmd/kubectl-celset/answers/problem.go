// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/celset/celset/cmd/kubectl-celset/check"
	"github.com/celset/celset/internal/clusterstate"
)

const (
	// maxChecked is the maximum number of objects that are checked.
	maxChecked = 64
	// checkPart is the part of the time for the question that the search for sets of the check may take, as a divisor.
	checkPart = 10
)

// check records the findings of package check on the objects of the documents.
func (t *trial) check(ctx context.Context, state *clusterstate.State) error {
	wanted := map[any]bool{}
	asked := clusterstate.State{Objects: *state.Asked()}
	left := 0
	for _, object := range asked.Checkable() {
		if len(wanted) == maxChecked {
			left++
			continue
		}
		wanted[object] = true
	}
	if left > 0 {
		t.problem(severityWarning, 0, 0, fmt.Sprintf("%d more objects are not checked for mistakes, because the limit is %d", left, maxChecked))
	}
	if len(wanted) == 0 {
		return nil
	}
	report, err := check.Run(ctx, state, func(object any) bool { return wanted[object] }, check.Options{
		Features: t.Features, AllClasses: t.question.Machine == "" && state.HasCluster, Timeout: t.Timeout / checkPart,
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		t.problem(severityError, 0, 0, err.Error())
		return nil
	}
	for i := range report.Objects {
		object := &report.Objects[i]
		at := t.places[objectKey{object.Kind, object.Namespace, object.Name}]
		for _, finding := range object.Errors {
			t.finding(severityError, at, finding.Field, finding.Line, finding.Column, finding.Message)
		}
		for _, finding := range object.Warnings {
			t.finding(severityWarning, at, finding.Field, finding.Line, finding.Column, finding.Message)
		}
	}
	return nil
}

// fieldInMessage finds the path of a field at the beginning of a message.
var fieldInMessage = regexp.MustCompile(`^((?:spec|metadata|status)[\w.\-/\[\]]*): `)

// finding records a finding on a field. line and column are a position in the expression of the field, or 0.
func (t *trial) finding(severity string, at *place, field string, line, column int, message string) {
	if found := fieldInMessage.FindStringSubmatch(message); field == "" && found != nil {
		field = found[1]
	}
	if len(t.problems) < maxProblems {
		inLine, inColumn := at.of(field, line, column)
		t.problem(severity, inLine, inColumn, message)
	}
}

// unknownField finds the unknown and duplicate fields in an error of a strict decoder.
var unknownField = regexp.MustCompile(`(?:unknown|duplicate) field "([^"]+)"`)

// wrongType finds the type of a value, and the path of its field, in an error of a JSON decoder.
var wrongType = regexp.MustCompile(`cannot unmarshal (string|bool|number|object|array)\b.* into Go struct field \w+\.(\S+) of type`)

// undecodable records the mistakes in a document that can't be decoded: each unknown field, or else
// the error at the field with a value of the wrong type.
func (t *trial) undecodable(at *place, err error) {
	found := unknownField.FindAllStringSubmatch(err.Error(), -1)
	for _, match := range found {
		t.problemAt(severityError, at, match[1], match[0])
	}
	if len(found) == 0 {
		if match := wrongType.FindStringSubmatch(err.Error()); match != nil {
			if line, column, ok := at.ofType(match[2], match[1]); ok {
				t.problem(severityError, line, column, strings.TrimPrefix(err.Error(), "documents: "))
				return
			}
		}
		t.problemAt(severityError, at, "", strings.TrimPrefix(err.Error(), "documents: "))
	}
}
