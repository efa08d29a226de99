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

	"github.com/celset/celset/apis/nearest"
)

// kindVersions has the newest version of each kind that matters.
var kindVersions = map[string]schema.GroupVersion{
	"ResourceClaim":         resourceapi.SchemeGroupVersion,
	"ResourceClaimTemplate": resourceapi.SchemeGroupVersion,
	"DeviceClass":           resourceapi.SchemeGroupVersion,
	"ResourceSlice":         resourceapi.SchemeGroupVersion,
	"DeviceTaintRule":       resourceapi.SchemeGroupVersion,
	"Node":                  corev1.SchemeGroupVersion,
	"Pod":                   corev1.SchemeGroupVersion,
	"PodGroup":              schedulingapi.SchemeGroupVersion,
}

// nearKind returns the kind that matters and that an unknown one is meant for, or an empty one. Other APIs have kinds of the
// same name, so the group has to be nearly the same, too, or missing.
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

// misspelt returns a warning about a document that is passed over because of a mistake in its kind or version.
func misspelt(document Document) string {
	kind := document.Object.GroupVersionKind()
	near := nearKind(kind)
	if near.Empty() || near == kind {
		return ""
	}
	return fmt.Sprintf("%s: %s is passed over: no match for kind %q in apiVersion %q; did you mean kind %q in apiVersion %q?", document.Source,
		document.Object.GetName(), kind.Kind, kind.GroupVersion(), near.Kind, near.GroupVersion())
}
