// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetDefaults sets each unset field of args to its default. BackOff, Share and FragmentationInterval stay nil, because another
// profile may set them. But if BackOff or Share is set, SetDefaults sets the unset fields inside.
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
	setDefault(&args.DevicePreemption, DevicePreemption{})
	setDefault(&args.DevicePreemption.MinCandidateNodesPercentage, DefaultMinCandidateNodesPercentage)
	setDefault(&args.DevicePreemption.MinCandidateNodesAbsolute, DefaultMinCandidateNodesAbsolute)
	setDefault(&args.DevicePreemption.HoldTimeout, metav1.Duration{Duration: DefaultHoldTimeout})
	if args.BackOff != nil {
		setBackOffDefaults(args.BackOff)
	}
	if args.Share != nil {
		setShareDefaults(args.Share)
	}
}

// DefaultBackOff returns the back-off that applies if no profile sets one.
func DefaultBackOff() *BackOff {
	backOff := &BackOff{}
	setBackOffDefaults(backOff)
	return backOff
}

func setBackOffDefaults(backOff *BackOff) {
	setDefault(&backOff.Initial, metav1.Duration{Duration: DefaultBackOffInitial})
	setDefault(&backOff.Max, metav1.Duration{Duration: max(DefaultBackOffMax, backOff.Initial.Duration)})
}

// DefaultShare returns the share that applies if no profile sets one.
func DefaultShare() *Share {
	share := &Share{}
	setShareDefaults(share)
	return share
}

func setShareDefaults(share *Share) {
	setDefault(&share.Percent, DefaultSharePercent)
	setDefault(&share.Burst, metav1.Duration{Duration: DefaultShareBurst})
}

func setDefault[T any](setting **T, value T) {
	if *setting == nil {
		*setting = &value
	}
}
