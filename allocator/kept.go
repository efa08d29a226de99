// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

// keptAnswer is how a search ended.
type keptAnswer struct {
	found bool
	// reason is why nothing was found, if reasons are wanted. refusal is the error that
	// says so.
	reason  string
	refusal error
	// failure is why the node was refused without that all sets were looked at. It is about no
	// node.
	failure *EvaluationError
	// decisions are the alternatives that were chosen, by their place among those of the
	// request, for all requests of all claims. choices are the devices.
	decisions []int
	choices   []placeOfChoice
	// outcome is empty without preferences, values are those of the choices.
	outcome PreferenceOutcome
	values  []PreferenceValue
}

// placeOfChoice is a choice without the objects of the node.
type placeOfChoice struct {
	claim, request, position int
}

// What parts of an answer take, about.
const (
	choiceBytes = 24
	valueBytes  = 256
	errorBytes  = 128
)

// bytes returns about how many bytes the answer takes.
func (a *keptAnswer) bytes() int {
	bytes := 2*len(a.reason) + choiceBytes*(len(a.decisions)+len(a.choices)) + valueBytes*len(a.values)
	if a.refusal != nil || a.failure != nil {
		bytes += errorBytes
	}
	if e := a.failure; e != nil {
		bytes += len(e.Constraint) + len(e.Message) + choiceBytes*len(e.positions)
	}
	return bytes
}
