// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"sync"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// input is an activation with only the set variable. A search evaluates many sets, mostly of one size, so inputs are pooled.
// Reusing an input is safe, because the value of an evaluation is a bool, an int or a text, and does not refer to the input.
type input struct {
	// devices is the set as a CEL list, backed by values.
	devices ref.Val
	values  []ref.Val
}

var inputs = sync.Pool{New: func() any { return &input{} }}

// inputOf returns an input for the devices. The caller must release the input after the evaluation.
func inputOf(devices []*Device) *input {
	i := inputs.Get().(*input)
	if i.devices == nil || len(i.values) != len(devices) {
		i.values = make([]ref.Val, len(devices))
		i.devices = types.NewRefValList(types.DefaultTypeAdapter, i.values)
	}
	for at, device := range devices {
		i.values[at] = device
	}
	return i
}

func (i *input) release() { inputs.Put(i) }

// ResolveName implements [celgo.Activation].
func (i *input) ResolveName(name string) (any, bool) {
	if IsSet(name) {
		return i.devices, true
	}
	return nil, false
}

// Parent implements [celgo.Activation].
func (i *input) Parent() celgo.Activation { return nil }
