// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

func TestSetDefaults(t *testing.T) {
	args := &DynamicResourcesCELArgs{}
	SetDefaults(args)
	require.Empty(t, cmp.Diff(argsOf(10*time.Second, 10*time.Minute), args))

	set := &DynamicResourcesCELArgs{
		TypeMeta:       metav1.TypeMeta{APIVersion: "a", Kind: "b"},
		FilterTimeout:  &metav1.Duration{},
		BindingTimeout: &metav1.Duration{Duration: time.Minute},
		Budget:         &Budget{Steps: ptr.To[int64](5)},
	}
	SetDefaults(set)
	require.Equal(t, metav1.TypeMeta{APIVersion: "a", Kind: "b"}, set.TypeMeta)
	require.Zero(t, set.FilterTimeout.Duration, "0 means no limit and is not unset")
	require.Equal(t, time.Minute, set.BindingTimeout.Duration)
	require.Equal(t, DefaultBudgetCost, *set.Budget.Cost)
	require.Equal(t, int64(5), *set.Budget.Steps)

	// What is for the whole scheduler stays unset, for another profile may set it.
	require.Nil(t, args.BackOff)
	require.Nil(t, args.Share)
	require.Equal(t, backOffOf(time.Second, 5*time.Minute), DefaultBackOff())
	require.Equal(t, &Share{Percent: ptr.To[int32](20), Burst: &metav1.Duration{Duration: 150 * time.Millisecond}}, DefaultShare())
}

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		args *DynamicResourcesCELArgs
		want []string
	}{
		"unset":    {args: &DynamicResourcesCELArgs{}},
		"smallest": {args: argsOf(0, time.Second)},
		"too small": {args: argsOf(-1, time.Second-1), want: []string{
			`pluginConfig[0].args.filterTimeout: Invalid value: "-1ns": must be zero, for no limit, or positive`,
			`pluginConfig[0].args.bindingTimeout: Invalid value: "999.999999ms": must be at least 1s`,
		}},
		"smallest budget": {args: withBudget(argsOf(0, time.Second), 1, 1)},
		"budget unset":    {args: &DynamicResourcesCELArgs{Budget: &Budget{}}},
		"budget of nothing": {args: withBudget(argsOf(0, time.Second), 0, math.MinInt64), want: []string{
			"pluginConfig[0].args.budget.cost: Invalid value: 0: must be at least 1",
			"pluginConfig[0].args.budget.steps: Invalid value: -9223372036854775808: must be at least 1",
		}},
		"preemption unset": {args: &DynamicResourcesCELArgs{DevicePreemption: &DevicePreemption{}}},
		"preemption out of range": {args: &DynamicResourcesCELArgs{DevicePreemption: devicePreemptionOf(101, -1, time.Second-1)}, want: []string{
			"pluginConfig[0].args.devicePreemption.minCandidateNodesPercentage: Invalid value: 101: must be from 0 to 100",
			"pluginConfig[0].args.devicePreemption.minCandidateNodesAbsolute: Invalid value: -1: must be zero or positive",
			`pluginConfig[0].args.devicePreemption.holdTimeout: Invalid value: "999.999999ms": must be at least 1s`,
		}},
		"preemption on no node": {args: &DynamicResourcesCELArgs{DevicePreemption: devicePreemptionOf(0, 0, time.Second)}, want: []string{
			"pluginConfig[0].args.devicePreemption.minCandidateNodesAbsolute: Invalid value: 0: must be positive if minCandidateNodesPercentage is zero",
		}},
		"zero binding timeout": {args: argsOf(0, 0), want: []string{
			`pluginConfig[0].args.bindingTimeout: Invalid value: "0s": must be at least 1s`,
		}},
		"other type": {args: &DynamicResourcesCELArgs{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}, want: []string{
			`pluginConfig[0].args.apiVersion: Unsupported value: "v1": supported values: "config.celset.dev/v1alpha1"`,
			`pluginConfig[0].args.kind: Unsupported value: "Pod": supported values: "DynamicResourcesCELArgs"`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range Validate(tc.args, field.NewPath("pluginConfig").Index(0).Child("args")) {
				got = append(got, err.Error())
			}
			require.Empty(t, cmp.Diff(tc.want, got))
		})
	}
}
