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

// Objects has the objects that were read. All objects have the newest API version.
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
	// HasCluster means that a cluster was read, so an object that is missing here does not exist.
	HasCluster bool
	// Running has the pods of all namespaces that have a node. Only the fields that determine their resources are set.
	Running []*corev1.Pod
	Unread
	// fromFiles has the objects from files, which replace or complete the objects of the cluster. It is nil if no files were
	// read.
	fromFiles *Objects
}

// Unread describes objects that were not read.
type Unread struct {
	// RunningUnknown is the reason why Objects.Running was not read. It is empty if Running was read.
	RunningUnknown string
	// Ignored has the names of documents in files whose kind is not used.
	Ignored []string
	// Warnings are about objects that could not be read, but that not every command needs.
	Warnings []string
}

// Asked returns the objects that a command without a name is about: the objects from files, or all objects if no files were
// read.
func (o *Objects) Asked() *Objects {
	if o.fromFiles != nil {
		return o.fromFiles
	}
	return o
}

// LimitQuantities removes quantities out of range from slices, as the scheduler does, and adds a warning about each.
func (o *Objects) LimitQuantities() {
	for _, slice := range o.Slices {
		if removed := allocator.LimitQuantities(slice); len(removed) > 0 {
			o.Warnings = append(o.Warnings, fmt.Sprintf("ResourceSlice %s: ignored, because amounts are outside the range of an int64 in milli- to exa-units: %s",
				slice.Name, strings.Join(removed, ", ")))
		}
	}
}

// Overlay returns the union of o and other. If both have an object with the same name, the result has the object of other.
func (o *Objects) Overlay(other *Objects) *Objects {
	return &Objects{
		Claims:    Overlay(o.Claims, other.Claims),
		Templates: Overlay(o.Templates, other.Templates),
		Classes:   Overlay(o.Classes, other.Classes),
		Slices:    Overlay(o.Slices, other.Slices),
		Amendments: Amendments{
			TaintRules: Overlay(o.TaintRules, other.TaintRules),
			Attributes: Overlay(o.Attributes, withAge(other.Attributes, o.Attributes)),
		},
		Nodes:      Overlay(o.Nodes, other.Nodes),
		Pods:       Overlay(o.Pods, other.Pods),
		Groups:     Overlay(o.Groups, other.Groups),
		HasCluster: o.HasCluster || other.HasCluster,
		Running:    Overlay(o.Running, other.Running),
		Unread: Unread{
			RunningUnknown: o.RunningUnknown,
			Ignored:        slices.Concat(o.Ignored, other.Ignored),
			Warnings:       slices.Concat(o.Warnings, other.Warnings),
		},
		fromFiles: other,
	}
}

type key struct{ namespace, name string }

// Overlay returns the union of two lists, sorted by namespace and name. If both have an object with the same name, the result has the
// object of above.
func Overlay[T metav1.Object](below, above []T) []T {
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

// sortObjects sorts objects by namespace and name. Objects with the same name keep their order.
func sortObjects[T metav1.Object](objects []T) {
	slices.SortStableFunc(objects, func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
}

// AddObject adds an object and returns true if the object's kind is used.
func (o *Objects) AddObject(object runtime.Object) bool { return o.add(object, "") }

// add adds an object and returns true if the object's kind is used. namespace is the default for objects without a namespace.
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
