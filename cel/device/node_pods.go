// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	resourceapi "k8s.io/api/resource/v1"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// The pods of a node are stored as a text attribute, like its devices.
const (
	podsDomain      = "#pods"
	podsID          = "pods"
	podIndexID      = "index"
	onlyPodID       = "pod"
	podLabelsDomain = "#pod-labels"
	// anyPodLabel is the name of all labels of a pod in a [ReadSet]. It is no valid label key.
	anyPodLabel = "*"

	// NodePods is the attribute that holds the fields pod and pods of a node.
	NodePods resourceapi.QualifiedName = podsDomain + "/" + podsID
)

// OfPod is a pod as expressions see it.
type OfPod struct {
	Labels map[string]string `json:"labels,omitempty"`
	// Index is the number of the pod in its Job, StatefulSet or other workload. It is nil if the pod has no number.
	Index *int64 `json:"index,omitempty"`
}

// NodePodsOf returns the value of [NodePods] for the pods of the group on a node. It sorts the pods by content, so that loads of
// equal pods have equal values.
func NodePodsOf(pods []OfPod) (resourceapi.DeviceAttribute, error) {
	if len(pods) > v1alpha1.MaxNodeSetSize {
		return resourceapi.DeviceAttribute{}, fmt.Errorf("the node runs %d pods of the group, the limit for n.pods is %d", len(pods), v1alpha1.MaxNodeSetSize)
	}
	return encodedSet(pods)
}

var (
	podType = apiservercel.NewObjectType("celset.Pod", map[string]*apiservercel.DeclField{
		labelsField: field(labelsField, labelsType),
		indexField:  field(indexField, sized(apiservercel.IntType, 1)),
	})
	nodePodsType = apiservercel.NewListType(podType, v1alpha1.MaxNodeSetSize)
)

// nodePods holds the pods of a node as CEL values. one is the only pod of the node. It is a CEL error unless the node has exactly
// one pod. If the pods can't be decoded, both fields are CEL errors.
type nodePods struct {
	list, one ref.Val
	pods      []*pod
}

func podsOf(node *resourceapi.Device) *nodePods {
	text := node.Attributes[NodePods].StringValue
	if text == nil {
		failure := types.NewErr("n.pod and n.pods are not available for this node")
		return &nodePods{list: failure, one: failure}
	}
	var decoded []OfPod
	if err := json.Unmarshal([]byte(*text), &decoded); err != nil {
		failure := types.NewErr("the pods of the node: %v", err)
		return &nodePods{list: failure, one: failure}
	}
	all := &nodePods{pods: make([]*pod, len(decoded))}
	values := make([]ref.Val, len(decoded))
	for i := range decoded {
		all.pods[i] = newPod(&decoded[i])
		values[i] = all.pods[i]
	}
	all.list = types.NewRefValList(types.DefaultTypeAdapter, values)
	if len(values) == 1 {
		all.one = values[0]
	} else {
		all.one = types.NewErr("n.pod is the only pod of a node, but this node has %d pods of the group: use n.pods", len(values))
	}
	return all
}

// pod is a pod as a CEL value. Two values are equal if they are the same pod.
type pod struct {
	labels orderedMap
	size   int
	index  *int64
}

var (
	_ ref.Val            = &pod{}
	_ traits.Indexer     = &pod{}
	_ traits.FieldTester = &pod{}
)

func newPod(of *OfPod) *pod {
	labels := make(map[string]ref.Val, len(of.Labels))
	for key, value := range of.Labels {
		labels[key] = types.String(value)
	}
	return &pod{labels: newOrderedMap(labels), size: len(labels), index: of.Index}
}

// Get returns a field, as a CEL selection does.
func (p *pod) Get(name ref.Val) ref.Val {
	switch name {
	case types.String(labelsField):
		return p.labels
	case types.String(indexField):
		if p.index == nil {
			return types.NewErr("no such key: index: the pod has none of the labels that number pods: test has(n.pod.index) first")
		}
		return types.Int(*p.index)
	}
	return types.NewErr("no such field '%s'", name)
}

// IsSet implements CEL's has.
func (p *pod) IsSet(name ref.Val) ref.Val {
	return types.Bool(name == types.String(labelsField) || name == types.String(indexField) && p.index != nil)
}

// Equal compares identities.
func (p *pod) Equal(other ref.Val) ref.Val { return types.Bool(ref.Val(p) == other) }

// ConvertToNative supports the pod itself only.
func (p *pod) ConvertToNative(t reflect.Type) (any, error) {
	if reflect.TypeOf(p).AssignableTo(t) {
		return p, nil
	}
	return nil, fmt.Errorf("type conversion error from '%s' to '%v'", p.Type().TypeName(), t)
}

// ConvertToType supports type(pod) only.
func (p *pod) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return podType.CelType()
	}
	return types.NewErr("type conversion error from '%s' to '%s'", p.Type().TypeName(), t)
}

// Type returns the type of the field pod.
func (p *pod) Type() ref.Type { return podType.CelType() }

// Value returns the pod itself.
func (p *pod) Value() any { return p }

// Pods holds the properties of pods that an expression reads.
type Pods struct {
	// Any is true if the expression reads pods at all. Only is true if it reads the field pod, the only pod of a node.
	Any, Only bool
	// Labels holds the keys of the labels. AllLabels is true if the expression reads labels whose keys are not literals.
	Labels    map[string]bool
	AllLabels bool
	// Index is true if the expression reads the index of pods.
	Index bool
}

// Pods returns the properties of pods that the expression reads by the fields pod and pods of nodes.
func (r ReadSet) Pods() Pods {
	pods := Pods{Any: r.Attributes[AttributeName{podsDomain, podsID}], Labels: map[string]bool{}}
	if !pods.Any {
		return pods
	}
	pods.Only = r.Attributes[AttributeName{podsDomain, onlyPodID}]
	pods.Index = r.Attributes[AttributeName{podsDomain, podIndexID}]
	for name := range r.Attributes {
		switch {
		case name.Domain != podLabelsDomain:
		case name.ID == anyPodLabel:
			pods.AllLabels = true
		default:
			pods.Labels[name.ID] = true
		}
	}
	return pods
}

// IsOfPod reports whether the name is a property of pods.
func (n AttributeName) IsOfPod() bool { return n.Domain == podsDomain || n.Domain == podLabelsDomain }
