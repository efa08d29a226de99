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

	// These fields apply to the whole scheduler, so they must stay unset: another profile may set them.
	require.Nil(t, args.BackOff)
	require.Nil(t, args.Share)
	require.Equal(t, backOffOf(time.Second, 5*time.Minute), DefaultBackOff())
	require.Equal(t, &Share{Percent: ptr.To[int32](20), Burst: &metav1.Duration{Duration: 150 * time.Millisecond}}, DefaultShare())
}

// TestValidate tests that unset fields are valid, and that invalid values are rejected.
func TestValidate(t *testing.T) {
	require.Empty(t, Validate(&DynamicResourcesCELArgs{Budget: &Budget{}, DevicePreemption: &DevicePreemption{}}, nil))
	args := withBudget(argsOf(-1, time.Second-1), 0, math.MinInt64)
	args.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	require.EqualError(t, Validate(args, field.NewPath("args")).ToAggregate(), `[args.apiVersion: Unsupported value: "v1": supported values: "config.celset.dev/v1alpha1", `+
		`args.kind: Unsupported value: "Pod": supported values: "DynamicResourcesCELArgs", args.filterTimeout: Invalid value: "-1ns": must be zero, for no limit, or positive, `+
		`args.bindingTimeout: Invalid value: "999.999999ms": must be at least 1s, args.budget.cost: Invalid value: 0: must be at least 1, `+
		`args.budget.steps: Invalid value: -9223372036854775808: must be at least 1]`)
}
