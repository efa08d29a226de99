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
)

// Objects are what was read, of the newest API version that they exist in.
type Objects struct {
	Claims     []*resourceapi.ResourceClaim
	Templates  []*resourceapi.ResourceClaimTemplate
	Classes    []*resourceapi.DeviceClass
	Slices     []*resourceapi.ResourceSlice
	TaintRules []*resourceapi.DeviceTaintRule
	Nodes      []*corev1.Node
	Pods       []*corev1.Pod
	// Groups are those of files, and of a cluster if they were asked for.
	Groups []*schedulingapi.PodGroup
	// HasCluster says that a cluster was read, so that what is not here does not exist.
	HasCluster bool
	// Running are the pods of all namespaces that have a node. They have only the fields that their resources depend on.
	Running []*corev1.Pod
	Unread
	// above are the objects of files that replace or join those of a cluster. It is nil without such files.
	above *Objects
}

// Unread says what was not read.
type Unread struct {
	// RunningUnknown says why Objects.Running was not read. It is empty if it was.
	RunningUnknown string
	// PassedOver names the documents in files whose kind is not used.
	PassedOver []string
	// Warnings name objects that could not be read and that only some questions need.
	Warnings []string
}

// Asked are the objects that a question without a name is about: those of files, if files were read, or else all.
func (o *Objects) Asked() *Objects {
	if o.above != nil {
		return o.above
	}
	return o
}

// LimitQuantities leaves out of slices what can't be computed with, as the scheduler does, and warns of it.
func (o *Objects) LimitQuantities() {
	for _, slice := range o.Slices {
		if removed := allocator.LimitQuantities(slice); len(removed) > 0 {
			o.Warnings = append(o.Warnings, fmt.Sprintf("ResourceSlice %s: not used, because an amount is beyond those of an int64 in milli- to exa-units: %s",
				slice.Name, strings.Join(removed, ", ")))
		}
	}
}

// Overlay returns the objects of both. Of two with the same name, that of other counts.
func (o *Objects) Overlay(other *Objects) *Objects {
	return &Objects{
		Claims:     overlay(o.Claims, other.Claims),
		Templates:  overlay(o.Templates, other.Templates),
		Classes:    overlay(o.Classes, other.Classes),
		Slices:     overlay(o.Slices, other.Slices),
		TaintRules: overlay(o.TaintRules, other.TaintRules),
		Nodes:      overlay(o.Nodes, other.Nodes),
		Pods:       overlay(o.Pods, other.Pods),
		Groups:     overlay(o.Groups, other.Groups),
		HasCluster: o.HasCluster || other.HasCluster,
		Running:    overlay(o.Running, other.Running),
		Unread: Unread{
			RunningUnknown: o.RunningUnknown,
			PassedOver:     slices.Concat(o.PassedOver, other.PassedOver),
			Warnings:       slices.Concat(o.Warnings, other.Warnings),
		},
		above: other,
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

// sortObjects orders by namespace and name. Objects that share a name keep their order.
func sortObjects[T metav1.Object](objects []T) {
	slices.SortStableFunc(objects, func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
}

// add takes an object of a kind that matters, and is false for others. namespace is for
// those that should have one and don't.
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
