// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

// Answer is the result of a search, without the objects of the node.
type Answer struct {
	Found bool
	// Reason says why nothing was found, if reasons are wanted. Refusal is the error with this reason.
	Reason  string
	Refusal error
	// Failure is an expression that failed before all sets were looked at. It names no node.
	Failure *Error
	// Decisions has for each request of all claims the index of the alternative that was chosen. Choices has the devices.
	Decisions []int
	Choices   []Choice
	// Outcome is empty without preferences. Values has the values of the choices.
	Outcome Outcome
	Values  []Value
}

// Choice is a device taken for a request of a claim, by their indices.
type Choice struct {
	Claim, Request, Position int
}

// Parts of an answer take about this many bytes.
const (
	choiceBytes = 24
	valueBytes  = 256
	errorBytes  = 128
)

// Bytes returns about how many bytes the answer takes.
func (a *Answer) Bytes() int {
	bytes := 2*len(a.Reason) + choiceBytes*(len(a.Decisions)+len(a.Choices)) + valueBytes*len(a.Values)
	if a.Refusal != nil || a.Failure != nil {
		bytes += errorBytes
	}
	if e := a.Failure; e != nil {
		bytes += len(e.Constraint) + len(e.Message) + choiceBytes*len(e.positions)
	}
	return bytes
}
