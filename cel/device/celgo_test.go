// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device/library"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/corpus"
	"github.com/celset/celset/internal/testing/randomexpr"
)

// byCELGo evaluates expressions over devices with cel-go, without package cel.
type byCELGo struct {
	env *celgo.Env
}

func newByCELGo(t testing.TB) byCELGo {
	t.Helper()
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: utilversion.MajorMinor(1, 0),
		EnvOptions: append(append(library.Options(), celgo.Variable(devicesVariable, celgo.ListType(deviceType.CelType())), ext.Bindings(ext.BindingsVersion(0))),
			mathematics()...),
		DeclTypes: []*apiservercel.DeclType{deviceType},
	})
	require.NoError(t, err)
	return byCELGo{set.StoredExpressionsEnv()}
}

// satisfied returns cel-go's result and cost. compiles is false if the expression does not compile.
func (b byCELGo) satisfied(t require.TestingT, text string, set []*Device) (value ref.Val, cost uint64, compiles bool, failure error) {
	checked, issues := b.env.Compile(text)
	if issues.Err() != nil {
		return nil, 0, false, nil
	}
	program, err := b.env.Program(checked, celgo.CostLimit(math.MaxUint64))
	if err != nil {
		return nil, 0, false, nil
	}
	values := make([]ref.Val, len(set))
	for i, device := range set {
		values[i] = device
	}
	value, details, failure := program.Eval(&input{devices: types.NewRefValList(types.DefaultTypeAdapter, values)})
	require.NotNil(t, details)
	return value, *details.ActualCost(), true, failure
}

// requireSame requires that ours and cel-go return the same verdict, failure and cost.
func (b byCELGo) requireSame(t require.TestingT, ours *Environment, text string, set []*Device) {
	value, cost, compiles, failure := b.satisfied(t, text, set)
	expression, err := ours.Compile(context.Background(), text)
	if !compiles {
		require.Error(t, err, text)
		return
	}
	require.NoError(t, err, text)
	if strings.Contains(text, "optMap") || strings.Contains(text, "optFlatMap") {
		// Package cel reads the optional value once, and cel-go several times, so the costs differ.
		cost = math.MaxUint64
	}
	budget := cel.NewBudget(math.MaxUint64)
	verdict, err := expression.Satisfied(context.Background(), set, budget)
	switch {
	case failure != nil && strings.Contains(failure.Error(), "internal error"):
		// cel-go's cost tracker can't handle operands that failed.
	case failure != nil:
		require.Error(t, err, text)
	case value.Type() == types.BoolType:
		require.NoError(t, err, text)
		require.Equal(t, bool(value.(types.Bool)), verdict, text)
		switch {
		case cost == math.MaxUint64:
		case strings.Contains(text, ".ring(") || strings.Contains(text, ".path("):
			// cel-go charges a fixed cost per call, and package cel charges for the work of the call.
			require.GreaterOrEqual(t, budget.Spent(), cost, text)
		default:
			require.Equal(t, cost, budget.Spent(), text)
		}
	}
}

func TestSameAsCELGo(t *testing.T) {
	ours, err := NewEnvironment(cel.Config{CostLimit: math.MaxUint64})
	require.NoError(t, err)
	theirs := newByCELGo(t)
	for _, e := range corpus.Expressions() {
		var set []*Device
		for _, d := range e.Hardware.Devices() {
			set = append(set, New(d.Driver, &d.Device))
			theirs.requireSame(t, ours, e.Text, set)
		}
	}
	cases.Check(t, func(t *rapid.T) {
		text := randomexpr.Condition(t, randomexpr.Attributes{
			Domain: "d", Ints: []string{"x", "y"}, String: "s", Strings: "list", Version: "version", Bool: "flag", Capacity: "memory", Drivers: []string{"d", "e"},
		})
		theirs.requireSame(t, ours, text, randomDevices(t))
	})
}

func randomDevices(t *rapid.T) []*Device {
	result := make([]*Device, rapid.IntRange(0, 5).Draw(t, "devices"))
	for i := range result {
		d := &resourceapi.Device{Name: fmt.Sprint(i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"y":         {IntValue: new(rapid.Int64Range(-1, 4).Draw(t, "y"))},
			"d/s":       {StringValue: new(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "s"))},
			"d/list":    {StringValues: rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3).Draw(t, "list")},
			"d/version": {VersionValue: new("1.2.0")},
			"d/flag":    {BoolValue: new(rapid.Bool().Draw(t, "flag"))},
		}}
		if rapid.IntRange(0, 3).Draw(t, "x") > 0 {
			d.Attributes["d/x"] = resourceapi.DeviceAttribute{IntValue: new(rapid.Int64Range(0, 4).Draw(t, "int"))}
		}
		d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"d/memory": {Value: *resource.NewQuantity(1<<30, resource.BinarySI)}}
		result[i] = New(rapid.SampledFrom([]string{"d", "e"}).Draw(t, "driver"), d)
	}
	return result
}
