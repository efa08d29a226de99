// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

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
	setDefault(&args.FilterTimeout, DefaultFilterTimeout)
	setDefault(&args.BindingTimeout, DefaultBindingTimeout)
}

func setDefault(duration **metav1.Duration, value time.Duration) {
	if *duration == nil {
		*duration = &metav1.Duration{Duration: value}
	}
}
