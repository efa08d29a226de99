// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

const (
	// GroupName is the API group of the types in this package.
	GroupName = "celset.dev"
	// Kind is the kind of [CELDeviceConstraint].
	Kind = "CELDeviceConstraint"
)

// SchemeGroupVersion is the API version of the types in this package. These types are never added to a scheme, because they occur
// only as parameters inside other objects.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}
