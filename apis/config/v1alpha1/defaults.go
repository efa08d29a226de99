// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetDefaults sets each field of args that is unset to its default.
func SetDefaults(args *DynamicResourcesCELArgs) {
	if args.APIVersion == "" {
		args.APIVersion = SchemeGroupVersion.String()
	}
	if args.Kind == "" {
		args.Kind = Kind
	}
	if args.Allocator == "" {
		args.Allocator = AllocatorConstrained
	}
	setDefault(&args.FilterTimeout, metav1.Duration{Duration: DefaultFilterTimeout})
	setDefault(&args.BindingTimeout, metav1.Duration{Duration: DefaultBindingTimeout})
	setDefault(&args.AttemptTimeout, metav1.Duration{Duration: DefaultAttemptTimeout})
	setDefault(&args.Budget, Budget{})
	setDefault(&args.Budget.Cost, DefaultBudgetCost)
	setDefault(&args.Budget.Steps, DefaultBudgetSteps)
	setDefault(&args.CacheSize, *resource.NewQuantity(DefaultCacheSize, resource.BinarySI))
	// Who raises the budget of a node only means it.
	setDefault(&args.Budget.AttemptCost, max(DefaultBudgetAttemptCost, *args.Budget.Cost))
	setDefault(&args.Budget.AttemptSteps, max(DefaultBudgetAttemptSteps, *args.Budget.Steps))
	setDefault(&args.BackOff, BackOff{})
	setDefault(&args.BackOff.Initial, metav1.Duration{Duration: DefaultBackOffInitial})
	setDefault(&args.BackOff.Max, metav1.Duration{Duration: max(DefaultBackOffMax, args.BackOff.Initial.Duration)})
	setDefault(&args.Share, Share{})
	setDefault(&args.Share.Percent, DefaultSharePercent)
	setDefault(&args.Share.Burst, metav1.Duration{Duration: DefaultShareBurst})
}

func setDefault[T any](setting **T, value T) {
	if *setting == nil {
		*setting = &value
	}
}
