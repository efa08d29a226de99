// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

// Answer is the result of an Allocate call, with indices and positions instead of objects of the node.
type Answer struct {
	Found bool
	// Reason is the reason why the claims don't fit, if reasons are requested. Refusal is the error with this reason.
	Reason  string
	Refusal error
	// Failure is the failure of an expression that ended the search, without the names of the claim, the node and the devices.
	Failure *Error
	// Decisions holds the index of the chosen alternative for each request of all claims. Choices holds the chosen devices.
	Decisions []int
	Choices   []Choice
	// Outcome is the quality of the chosen devices. It is empty without preferences. Values holds the value of each preference.
	Outcome Outcome
	Values  []Value
}

// Choice is a device chosen for a request: the index of the claim, the index of the request, and the position of the device.
type Choice struct {
	Claim, Request, Position int
}

// These are the approximate sizes in bytes of parts of an answer.
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
