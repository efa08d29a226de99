// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// GroupName is the API group of the types in this package.
	GroupName = "celset.dev"
	// Kind is the kind of [CELDeviceConstraint].
	Kind = "CELDeviceConstraint"
	// DeviceAttributesKind is the kind of [DeviceAttributes].
	DeviceAttributesKind = "DeviceAttributes"
	// DeviceAttributesResource is the resource of [DeviceAttributes].
	DeviceAttributesResource = "deviceattributes"
)

// SchemeGroupVersion is the API version of the types in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// AddToScheme adds [DeviceAttributes] to a scheme. The other types are never added, because they occur only as parameters inside
// other objects.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &DeviceAttributes{}, &DeviceAttributesList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
