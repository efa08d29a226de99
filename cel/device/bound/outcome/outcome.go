// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package outcome

import "strings"

// An Outcome is the set of results that a boolean expression may have.
type Outcome uint8

const (
	// True means that the expression may become true.
	True Outcome = 1 << iota
	// False means that the expression may become false.
	False
	// Error means that the expression may fail.
	Error

	// Open includes all results.
	Open = True | False | Error
)

// String lists the results.
func (o Outcome) String() string {
	var names []string
	for _, result := range []struct {
		outcome Outcome
		name    string
	}{{True, "true"}, {False, "false"}, {Error, "error"}} {
		if o&result.outcome != 0 {
			names = append(names, result.name)
		}
	}
	return strings.Join(names, "|")
}

// May reports whether the result is possible.
func (o Outcome) May(result Outcome) bool { return o&result != 0 }

// Of returns the outcome with the value as the only result.
func Of(value bool) Outcome {
	if value {
		return True
	}
	return False
}

// Not returns the outcome of CEL's negation.
func (o Outcome) Not() Outcome {
	result := o & Error
	if o.May(True) {
		result |= False
	}
	if o.May(False) {
		result |= True
	}
	return result
}

// And returns the outcome of CEL's conjunction. False absorbs errors on either side.
func (o Outcome) And(other Outcome) Outcome {
	var result Outcome
	if o.May(False) || other.May(False) {
		result |= False
	}
	if o.May(True) && other.May(True) {
		result |= True
	}
	if o.May(Error) && other.May(True|Error) || other.May(Error) && o.May(True|Error) {
		result |= Error
	}
	return result
}

// Or returns the outcome of CEL's disjunction. True absorbs errors on either side.
func (o Outcome) Or(other Outcome) Outcome {
	return o.Not().And(other.Not()).Not()
}

// Choose returns the outcome of CEL's conditional "o ? yes : no".
func (o Outcome) Choose(yes, no Outcome) Outcome {
	result := o & Error
	if o.May(True) {
		result |= yes
	}
	if o.May(False) {
		result |= no
	}
	return result
}
