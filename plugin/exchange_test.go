// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/allocator"
)

type rightState struct {
	before    int
	allocator structured.Allocator
	after     string
}

type otherState struct{ Allocator structured.Allocator }

type noField struct{ Assigner structured.Allocator }

type otherFieldType struct {
	allocator *allocator.Allocator //nolint:unused // found by reflection
}

type notAStruct map[string]string

func (*rightState) Clone() fwk.StateData     { return nil }
func (*otherState) Clone() fwk.StateData     { return nil }
func (*noField) Clone() fwk.StateData        { return nil }
func (*otherFieldType) Clone() fwk.StateData { return nil }
func (notAStruct) Clone() fwk.StateData      { return nil }

func TestFieldExchange(t *testing.T) {
	state := &rightState{before: 1, after: "untouched"}
	e, err := newFieldExchange(typeOf(state))
	require.NoError(t, err)

	field, err := e.allocator(state)
	require.NoError(t, err)
	require.Nil(t, *field)
	ours := &allocator.Allocator{}
	*field = ours

	require.Same(t, ours, state.allocator)
	require.Equal(t, 1, state.before)
	require.Equal(t, "untouched", state.after)

	_, err = e.allocator(&otherState{})
	require.ErrorContains(t, err, "its cycle state is *plugin.otherState, at start it was *plugin.rightState")
}

func TestFieldExchangeRefusesWhatChanged(t *testing.T) {
	for name, test := range map[string]struct {
		state fwk.StateData
		want  string
	}{
		"renamed field":    {&noField{}, "has no field allocator"},
		"other field type": {&otherFieldType{}, "is a *allocator.Allocator, not a structured.Allocator"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newFieldExchange(typeOf(test.state))
			require.ErrorContains(t, err, test.want)
			require.ErrorContains(t, err, "build it with the version of Kubernetes that go.mod names")
		})
	}
}

func TestExchangeRefusesOtherStates(t *testing.T) {
	for name, test := range map[string]struct {
		state fwk.StateData
		want  string
	}{
		"none":          {nil, "its cycle state is <nil>, not a pointer to a struct"},
		"not a pointer": {notAStruct{}, "its cycle state is plugin.notAStruct, not a pointer to a struct"},
		"other type":    {&rightState{}, "not a " + stateTypeName},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newExchange(test.state)
			require.ErrorContains(t, err, test.want)
		})
	}
}
