// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	celsetv1alpha1 "github.com/celset/celset/apis/celset/v1alpha1"
)

// Validate checks the values of args. path is the path of args. An unset field is valid, because it gets its default.
func Validate(args *DynamicResourcesCELArgs, path *field.Path) field.ErrorList {
	errs := validateType(args.TypeMeta, path)
	if args.FilterTimeout != nil && args.FilterTimeout.Duration < 0 {
		errs = append(errs, field.Invalid(path.Child("filterTimeout"), args.FilterTimeout.Duration.String(),
			"must be zero, for no limit, or positive"))
	}
	if args.BindingTimeout != nil && args.BindingTimeout.Duration < MinBindingTimeout {
		errs = append(errs, field.Invalid(path.Child("bindingTimeout"), args.BindingTimeout.Duration.String(),
			"must be at least "+MinBindingTimeout.String()))
	}
	if args.AttemptTimeout != nil && args.AttemptTimeout.Duration < 0 {
		errs = append(errs, field.Invalid(path.Child("attemptTimeout"), args.AttemptTimeout.Duration.String(),
			"must be zero, for no limit, or positive"))
	}
	if args.BackOff != nil {
		errs = append(errs, validateBackOff(args.BackOff, path.Child("backOff"))...)
	}
	if args.Share != nil {
		errs = append(errs, validateShare(args.Share, path.Child("share"))...)
	}
	if args.Budget != nil {
		errs = append(errs, validateBudget(args.Budget, path.Child("budget"))...)
	}
	if interval := args.FragmentationInterval; interval != nil && interval.Duration != 0 && interval.Duration < MinFragmentationInterval {
		errs = append(errs, field.Invalid(path.Child("fragmentationInterval"), interval.Duration.String(),
			"must be zero, for never, or at least "+MinFragmentationInterval.String()))
	}
	errs = append(errs, validateDefaultPreference(args, path.Child("defaultPreference"))...)
	if args.DevicePreemption != nil {
		errs = append(errs, validateDevicePreemption(args.DevicePreemption, path.Child("devicePreemption"))...)
	}
	if args.CacheSize != nil {
		errs = append(errs, validateCacheSize(args.CacheSize, path.Child("cacheSize"))...)
	}
	switch args.Allocator {
	case "", AllocatorConstrained, AllocatorAll, AllocatorUpstream:
	default:
		errs = append(errs, field.NotSupported(path.Child("allocator"), args.Allocator, []AllocatorMode{AllocatorConstrained, AllocatorAll, AllocatorUpstream}))
	}
	return errs
}

func validateBudget(budget *Budget, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, limit := range []struct {
		name  string
		value *int64
	}{{"cost", budget.Cost}, {"steps", budget.Steps}} {
		if limit.value != nil && *limit.value < 1 {
			errs = append(errs, field.Invalid(path.Child(limit.name), *limit.value, "must be at least 1"))
		}
	}
	return errs
}

func validateDefaultPreference(args *DynamicResourcesCELArgs, path *field.Path) field.ErrorList {
	switch {
	case args.DefaultPreference == "":
		return nil
	case !slices.Contains(celsetv1alpha1.PreferencePolicies, args.DefaultPreference):
		return field.ErrorList{field.NotSupported(path, args.DefaultPreference, celsetv1alpha1.PreferencePolicies)}
	case args.Allocator == AllocatorUpstream:
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("the allocator %s does not support preferences: remove defaultPreference, or choose another allocator", AllocatorUpstream))}
	}
	return nil
}

// maxCacheSize is 1Ti, far more than a cache needs.
const maxCacheSize = 1 << 40

func validateCacheSize(size *resource.Quantity, path *field.Path) field.ErrorList {
	// Use AsInt64, because it is fast for every exponent.
	bytes, ok := size.AsInt64()
	if !ok || bytes > maxCacheSize {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be a whole number of bytes, at most 1Ti")}
	}
	if bytes < MinCacheSize {
		return field.ErrorList{field.Invalid(path, bytes, fmt.Sprintf("must be at least %d bytes, which is 1Mi", MinCacheSize))}
	}
	return nil
}

func validateBackOff(backOff *BackOff, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	least := MinBackOff
	if initial := backOff.Initial; initial != nil {
		if initial.Duration < MinBackOff {
			errs = append(errs, field.Invalid(path.Child("initial"), initial.Duration.String(), "must be at least "+MinBackOff.String()))
		}
		least = max(least, initial.Duration)
	}
	if longest := backOff.Max; longest != nil && longest.Duration < least {
		errs = append(errs, field.Invalid(path.Child("max"), longest.Duration.String(), "must be at least "+least.String()))
	}
	return errs
}

// validateDevicePreemption checks the numbers of candidate nodes as upstream's plugin DefaultPreemption does.
func validateDevicePreemption(args *DevicePreemption, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	percentage, absolute := args.MinCandidateNodesPercentage, args.MinCandidateNodesAbsolute
	if percentage != nil && (*percentage < 0 || *percentage > 100) {
		errs = append(errs, field.Invalid(path.Child("minCandidateNodesPercentage"), *percentage, "must be from 0 to 100"))
	}
	if absolute != nil && *absolute < 0 {
		errs = append(errs, field.Invalid(path.Child("minCandidateNodesAbsolute"), *absolute, "must be zero or positive"))
	}
	if percentage != nil && absolute != nil && *percentage == 0 && *absolute == 0 {
		errs = append(errs, field.Invalid(path.Child("minCandidateNodesAbsolute"), *absolute, "must be positive if minCandidateNodesPercentage is zero"))
	}
	if timeout := args.HoldTimeout; timeout != nil && timeout.Duration < MinHoldTimeout {
		errs = append(errs, field.Invalid(path.Child("holdTimeout"), timeout.Duration.String(), "must be at least "+MinHoldTimeout.String()))
	}
	return errs
}

func validateShare(share *Share, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if percent := share.Percent; percent != nil && (*percent < 1 || *percent > 100) {
		errs = append(errs, field.Invalid(path.Child("percent"), *percent, "must be from 1 to 100"))
	}
	if burst := share.Burst; burst != nil && burst.Duration < MinShareBurst {
		errs = append(errs, field.Invalid(path.Child("burst"), burst.Duration.String(), "must be at least "+MinShareBurst.String()))
	}
	return errs
}

// validateType checks that apiVersion and kind are absent or name this package's arguments.
func validateType(meta metav1.TypeMeta, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if want := SchemeGroupVersion.String(); meta.APIVersion != "" && meta.APIVersion != want {
		errs = append(errs, field.NotSupported(path.Child("apiVersion"), meta.APIVersion, []string{want}))
	}
	if meta.Kind != "" && meta.Kind != Kind {
		errs = append(errs, field.NotSupported(path.Child("kind"), meta.Kind, []string{Kind}))
	}
	return errs
}
