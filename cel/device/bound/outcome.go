// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import "strings"

// Outcome is the set of results that a boolean expression may have.
type Outcome uint8

const (
	// True means that the expression may become true.
	True Outcome = 1 << iota
	// False means that it may become false.
	False
	// Error means that it may fail.
	Error

	// Open is all of them: nothing is known.
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

func (o Outcome) may(result Outcome) bool { return o&result != 0 }

func outcomeOf(value bool) Outcome {
	if value {
		return True
	}
	return False
}

func (o Outcome) not() Outcome {
	result := o & Error
	if o.may(True) {
		result |= False
	}
	if o.may(False) {
		result |= True
	}
	return result
}

// and is CEL's: false absorbs errors, on either side.
func (o Outcome) and(other Outcome) Outcome {
	var result Outcome
	if o.may(False) || other.may(False) {
		result |= False
	}
	if o.may(True) && other.may(True) {
		result |= True
	}
	if o.may(Error) && other.may(True|Error) || other.may(Error) && o.may(True|Error) {
		result |= Error
	}
	return result
}

// or is CEL's: true absorbs errors, on either side.
func (o Outcome) or(other Outcome) Outcome {
	return o.not().and(other.not()).not()
}

// choose is CEL's conditional.
func (o Outcome) choose(yes, no Outcome) Outcome {
	result := o & Error
	if o.may(True) {
		result |= yes
	}
	if o.may(False) {
		result |= no
	}
	return result
}
