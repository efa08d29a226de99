// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"time"

	"github.com/celset/celset/cmd/kubectl-celset/output"
)

// Report has the results of all files. ExpressionTestReport.yaml in package output is its schema.
type Report struct {
	output.Meta
	Counts
	Seconds float64 `json:"seconds"`
	Files   []File  `json:"files"`
}

// Counts counts cases by their outcome.
type Counts struct {
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Errors  int `json:"errors"`
	Updated int `json:"updated,omitempty"`
}

// File has the results of a file.
type File struct {
	// Name is the path of the file.
	Name string `json:"name"`
	Counts
	Seconds float64 `json:"seconds"`
	// Mistakes are mistakes in the file. If there are any, no case runs.
	Mistakes []Mistake `json:"mistakes,omitempty"`
	Cases    []Result  `json:"cases"`
}

// Outcome is the outcome of a case.
type Outcome string

// The outcomes of a case.
const (
	// Passed means that all expectations are true.
	Passed Outcome = "Passed"
	// Failed means that an expectation is not true.
	Failed Outcome = "Failed"
	// Error means that there is no answer, because of a mistake in the case or in its objects.
	Error Outcome = "Error"
	// Updated means that the answer was written into the file.
	Updated Outcome = "Updated"
)

// Result is the result of a case.
type Result struct {
	Name    string  `json:"name"`
	Line    int     `json:"line"`
	Outcome Outcome `json:"outcome"`
	Seconds float64 `json:"seconds"`
	// Failures are the expectations that are not true.
	Failures []Failure `json:"failures,omitempty"`
	// Error is the reason why there is no answer.
	Error string `json:"error,omitempty"`
	// Warnings are warnings about the objects of the case. They are absent if the case passed.
	Warnings []string `json:"warnings,omitempty"`
}

// Failure is an expectation that is not true.
type Failure struct {
	// Field is the path of the expectation in the case, for example "expect.devices".
	Field string `json:"field"`
	Want  string `json:"want"`
	Got   string `json:"got"`
}

// add counts the result of a case.
func (c *Counts) add(outcome Outcome) {
	switch outcome {
	case Passed:
		c.Passed++
	case Failed:
		c.Failed++
	case Updated:
		c.Updated++
	default:
		c.Errors++
	}
}

// cases returns the number of cases.
func (c *Counts) cases() int { return c.Passed + c.Failed + c.Errors + c.Updated }

// IsUnanswered reports whether a file or a case has a mistake, so that there is no answer.
func (r *Report) IsUnanswered() bool {
	for i := range r.Files {
		if len(r.Files[i].Mistakes) > 0 {
			return true
		}
	}
	return r.Errors > 0
}

// seconds rounds a duration for reports.
func seconds(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond).Milliseconds()) / 1000
}
