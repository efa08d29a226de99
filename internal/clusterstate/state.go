// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/compat"
)

// State answers queries about objects. The objects must not be modified any more.
type State struct {
	Objects
	classes map[string]*resourceapi.DeviceClass
	nodes   []*corev1.Node
	// onNode maps the name of a node to the pods that have this node.
	onNode map[string][]*corev1.Pod
}

// New returns a State for the objects, and sorts the objects by name. The caller must not use the objects any more.
func New(objects *Objects) *State {
	s := &State{Objects: *objects, classes: make(map[string]*resourceapi.DeviceClass)}
	sortObjects(s.Claims)
	sortObjects(s.Templates)
	sortObjects(s.Objects.Classes)
	sortObjects(s.Objects.Slices)
	sortObjects(s.TaintRules)
	sortObjects(s.Attributes)
	sortObjects(s.Pods)
	sortObjects(s.Groups)
	for _, class := range s.Objects.Classes {
		s.classes[class.Name] = class
	}
	s.nodes = nodesOf(objects)
	s.onNode = map[string][]*corev1.Pod{}
	for _, pod := range Overlay(objects.Running, objects.Pods) {
		if pod.Spec.NodeName != "" {
			s.onNode[pod.Spec.NodeName] = append(s.onNode[pod.Spec.NodeName], pod)
		}
	}
	return s
}

// On returns the pods on a node. If the pods of all namespaces were read, it returns pods of all namespaces.
func (s *State) On(node string) []*corev1.Pod { return s.onNode[node] }

// nodesOf returns the nodes, sorted by name. If no node was read, it returns a node without labels for each node that a slice
// names.
func nodesOf(objects *Objects) []*corev1.Node {
	nodes := slices.Clone(objects.Nodes)
	if len(nodes) == 0 {
		seen := make(map[string]bool)
		for _, slice := range objects.Slices {
			if name := ptr.Deref(slice.Spec.NodeName, ""); name != "" && !seen[name] {
				seen[name] = true
				nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
			}
		}
	}
	sortObjects(nodes)
	return nodes
}

// Nodes returns all nodes, sorted by name. If no node was read, it returns the nodes that slices name, without labels.
func (s *State) Nodes() []*corev1.Node { return s.nodes }

// Node returns a node by its name, or nil.
func (s *State) Node(name string) *corev1.Node {
	for _, node := range s.nodes {
		if node.Name == name {
			return node
		}
	}
	return nil
}

// ChosenNodes returns the named nodes, or all nodes if names is empty.
func (s *State) ChosenNodes(names []string) ([]*corev1.Node, error) {
	if len(names) == 0 {
		return s.nodes, nil
	}
	nodes := make([]*corev1.Node, len(names))
	for i, name := range names {
		if nodes[i] = s.Node(name); nodes[i] == nil {
			return nil, fmt.Errorf("there is no node %q%s", name, near(s.nodes, "", name))
		}
	}
	return nodes, nil
}

// Checkable returns all objects that can have device or node set constraints, and all DeviceAttributes.
func (s *State) Checkable() []metav1.Object {
	var all []metav1.Object
	for _, class := range s.Objects.Classes {
		all = append(all, class)
	}
	for _, template := range s.Templates {
		all = append(all, template)
	}
	for _, claim := range s.Claims {
		all = append(all, claim)
	}
	for _, group := range s.Groups {
		all = append(all, group)
	}
	for _, attributes := range s.Attributes {
		all = append(all, attributes)
	}
	return all
}

// ClassLister lists device classes for the resolution of constraints and for the allocator.
type ClassLister struct{ state *State }

var _ structured.DeviceClassLister = ClassLister{}

// Classes returns the device classes.
func (s *State) Classes() ClassLister { return ClassLister{s} }

// List returns all classes, sorted by name.
func (l ClassLister) List() ([]*resourceapi.DeviceClass, error) { return l.state.Objects.Classes, nil }

// Get returns a class by its name.
func (l ClassLister) Get(name string) (*resourceapi.DeviceClass, error) {
	if class := l.state.classes[name]; class != nil {
		return class, nil
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclasses"), name)
}

// selectorCacheSize is the number of compiled device selectors in the cache, the same as in the scheduler.
const selectorCacheSize = 10

// NewSelectors returns a cache of compiled device selectors, for an allocator with the given features.
func NewSelectors(features structured.Features) *dracel.Cache {
	return dracel.NewCache(selectorCacheSize, dracel.Features{
		EnableConsumableCapacity: features.ConsumableCapacity,
		EnableListTypeAttributes: features.ListTypeAttributes,
	})
}

// Slices returns the slices. If withTaintRules is set, the slices have the taints of DeviceTaintRules, as in the scheduler.
func (s *State) Slices(withTaintRules bool) []*resourceapi.ResourceSlice {
	if !withTaintRules || len(s.TaintRules) == 0 {
		return s.Objects.Slices
	}
	result := make([]*resourceapi.ResourceSlice, len(s.Objects.Slices))
	for i, slice := range s.Objects.Slices {
		result[i] = s.tainted(slice)
	}
	return result
}

// tainted returns a copy of the slice with the taints of rules, or the slice itself if no rule matches its devices.
func (s *State) tainted(slice *resourceapi.ResourceSlice) *resourceapi.ResourceSlice {
	result := slice
	for _, rule := range s.TaintRules {
		for i := range slice.Spec.Devices {
			if !compat.Taints(rule, slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.Devices[i].Name) {
				continue
			}
			if result == slice {
				result = slice.DeepCopy()
			}
			device := &result.Spec.Devices[i]
			device.Taints = append(device.Taints, rule.Spec.Taint)
		}
	}
	return result
}
