// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

// Answer is the result of a search, with indices and positions instead of objects of the node.
type Answer struct {
	Found bool
	// Reason says why nothing was found, if reasons are requested. Refusal is the error with this reason.
	Reason  string
	Refusal error
	// Failure is the failure of an expression that ended the search. It names no node.
	Failure *Error
	// Decisions holds, for each request of all claims, the index of the chosen alternative. Choices holds the devices.
	Decisions []int
	Choices   []Choice
	// Outcome is empty without preferences. Values holds the value of each preference for the chosen devices.
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

// Bytes returns the estimated size of the answer.
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
