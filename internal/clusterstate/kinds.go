// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/nearest"
)

// kindVersions maps each supported kind to its newest version.
var kindVersions = map[string]schema.GroupVersion{
	"ResourceClaim":         resourceapi.SchemeGroupVersion,
	"ResourceClaimTemplate": resourceapi.SchemeGroupVersion,
	"DeviceClass":           resourceapi.SchemeGroupVersion,
	"ResourceSlice":         resourceapi.SchemeGroupVersion,
	"DeviceTaintRule":       resourceapi.SchemeGroupVersion,
	"Node":                  corev1.SchemeGroupVersion,
	"Pod":                   corev1.SchemeGroupVersion,
	"DeviceAttributes":      v1alpha1.SchemeGroupVersion,
	"PodGroup":              schedulingapi.SchemeGroupVersion,
}

// nearKind returns the supported kind that the author of an unknown kind probably meant, or an empty kind. The group must be
// similar or missing, because other APIs have kinds with the same names.
func nearKind(unknown schema.GroupVersionKind) schema.GroupVersionKind {
	kind := unknown.Kind
	if _, known := kindVersions[kind]; !known {
		kind = nearest.Name(kind, maps.Keys(kindVersions))
	}
	of, known := kindVersions[kind]
	isNear := unknown.Group == "" || unknown.Group == of.Group || nearest.Name(unknown.Group, slices.Values([]string{of.Group})) != ""
	if !known || !isNear {
		return schema.GroupVersionKind{}
	}
	return of.WithKind(kind)
}

// misspelt returns a warning about a document that is ignored because of a mistake in its kind or version.
func misspelt(document Document) string {
	kind := document.Object.GroupVersionKind()
	near := nearKind(kind)
	if near.Empty() || near == kind {
		return ""
	}
	return fmt.Sprintf("%s: %s is ignored: no match for kind %q in apiVersion %q; did you mean kind %q in apiVersion %q?", document.Source,
		document.Object.GetName(), kind.Kind, kind.GroupVersion(), near.Kind, near.GroupVersion())
}
