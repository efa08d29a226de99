// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// Objects holds the objects that were read, each in the newest API version.
type Objects struct {
	Claims    []*resourceapi.ResourceClaim
	Templates []*resourceapi.ResourceClaimTemplate
	Classes   []*resourceapi.DeviceClass
	Slices    []*resourceapi.ResourceSlice
	Amendments
	Nodes []*corev1.Node
	Pods  []*corev1.Pod
	// Groups holds the groups from files, and also from the cluster if they were requested.
	Groups []*schedulingapi.PodGroup
	// HasCluster is set if a cluster was read. An object that is missing here then does not exist.
	HasCluster bool
	// Running holds the pods of all namespaces that have a node. Only the fields that their resources depend on are set.
	Running []*corev1.Pod
	Unread
	// fromFiles holds the objects from files that replace or complete the cluster's objects. It is nil without such files.
	fromFiles *Objects
}

// Unread describes objects that were not read.
type Unread struct {
	// RunningUnknown is the reason why Objects.Running was not read. It is empty if Running was read.
	RunningUnknown string
	// Ignored names the documents in files that have an unused kind.
	Ignored []string
	// Warnings names objects that could not be read and that only some questions need.
	Warnings []string
}

// Asked returns the objects from files if files were read, and otherwise all objects. A command without a name uses the result.
func (o *Objects) Asked() *Objects {
	if o.fromFiles != nil {
		return o.fromFiles
	}
	return o
}

// LimitQuantities removes excessive quantities from slices, as the scheduler does, and warns about them.
func (o *Objects) LimitQuantities() {
	for _, slice := range o.Slices {
		if removed := allocator.LimitQuantities(slice); len(removed) > 0 {
			o.Warnings = append(o.Warnings, fmt.Sprintf("ResourceSlice %s: ignored, because amounts are outside the range of an int64 in milli- to exa-units: %s",
				slice.Name, strings.Join(removed, ", ")))
		}
	}
}

// Overlay returns the objects of o and other. If both have an object with the same name, it returns the object of other.
func (o *Objects) Overlay(other *Objects) *Objects {
	return &Objects{
		Claims:    overlay(o.Claims, other.Claims),
		Templates: overlay(o.Templates, other.Templates),
		Classes:   overlay(o.Classes, other.Classes),
		Slices:    overlay(o.Slices, other.Slices),
		Amendments: Amendments{
			TaintRules: overlay(o.TaintRules, other.TaintRules),
			Attributes: overlay(o.Attributes, other.Attributes),
		},
		Nodes:      overlay(o.Nodes, other.Nodes),
		Pods:       overlay(o.Pods, other.Pods),
		Groups:     overlay(o.Groups, other.Groups),
		HasCluster: o.HasCluster || other.HasCluster,
		Running:    overlay(o.Running, other.Running),
		Unread: Unread{
			RunningUnknown: o.RunningUnknown,
			Ignored:        slices.Concat(o.Ignored, other.Ignored),
			Warnings:       slices.Concat(o.Warnings, other.Warnings),
		},
		fromFiles: other,
	}
}

type key struct{ namespace, name string }

func overlay[T metav1.Object](below, above []T) []T {
	hidden := make(map[key]bool, len(above))
	for _, object := range above {
		hidden[keyOf(object)] = true
	}
	result := slices.Clone(above)
	for _, object := range below {
		if !hidden[keyOf(object)] {
			result = append(result, object)
		}
	}
	sortObjects(result)
	return result
}

func keyOf(object metav1.Object) key { return key{object.GetNamespace(), object.GetName()} }

// sortObjects sorts objects by namespace and name. The sort is stable.
func sortObjects[T metav1.Object](objects []T) {
	slices.SortStableFunc(objects, func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
}

// add adds an object if its kind is used, and reports whether it did. namespace is the default for namespaced objects.
func (o *Objects) add(object runtime.Object, namespace string) bool {
	switch object := object.(type) {
	case *resourceapi.ResourceClaim:
		o.Claims = append(o.Claims, inNamespace(object, namespace))
	case *resourceapi.ResourceClaimTemplate:
		o.Templates = append(o.Templates, inNamespace(object, namespace))
	case *resourceapi.DeviceClass:
		o.Classes = append(o.Classes, object)
	case *resourceapi.ResourceSlice:
		o.Slices = append(o.Slices, object)
	case *resourceapi.DeviceTaintRule:
		o.TaintRules = append(o.TaintRules, object)
	case *v1alpha1.DeviceAttributes:
		o.Attributes = append(o.Attributes, object)
	case *corev1.Node:
		o.Nodes = append(o.Nodes, object)
	case *corev1.Pod:
		o.Pods = append(o.Pods, inNamespace(object, namespace))
	case *schedulingapi.PodGroup:
		o.Groups = append(o.Groups, inNamespace(object, namespace))
	default:
		return false
	}
	return true
}

func inNamespace[T metav1.Object](object T, namespace string) T {
	if object.GetNamespace() == "" {
		object.SetNamespace(namespace)
	}
	return object
}
