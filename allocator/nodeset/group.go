// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device"
)

// Group is a group of pods with a constraint on their set of nodes.
type Group struct {
	Namespace, Name string
	Constraint      *v1alpha1.NodeSetConstraint
	// Kinds holds the number of waiting pods of each kind. Pods are of the same kind if [Reading.KindOf] returns the same key.
	Kinds []int
	// Waiting holds the waiting pods of each kind, sorted by [ComparePods]. Without it, segments of pods are not kept together.
	Waiting [][]*v1.Pod
	// Least is the number of pods to choose nodes for if not all pods fit. 0 means all pods.
	Least int
	// ReadsDevices is true if expressions read the devices of pods ([Reading.Devices], [Node.Sets]). Each node then takes one pod.
	ReadsDevices bool
	// ReadsPods reports whether expressions read the pods that nodes are for ([Reading.Pods]). Pods then holds, for each kind, a pod as
	// expressions read it ([Reading.OfPod]).
	ReadsPods bool
	Pods      []device.OfPod
}

// Read sets ReadsDevices and ReadsPods. It returns an error if the expressions read properties that podsPerNode forbids.
func (g *Group) Read(r *Reading) error {
	g.ReadsDevices, g.ReadsPods = r.devices, r.pods.Any
	switch {
	case g.podsPerNode() == 1:
	case g.ReadsDevices:
		return fmt.Errorf("%s: podsPerNode is %d, but the expression reads n.devices, which contains the devices of one pod: remove podsPerNode", g.Constraint.Source, g.Constraint.PodsPerNode)
	case r.pods.Only:
		return fmt.Errorf("%s: podsPerNode is %d, but the expression reads n.pod, the only pod of a node: read n.pods instead, or remove podsPerNode", g.Constraint.Source, g.Constraint.PodsPerNode)
	}
	return nil
}

// podsPerNode returns the maximum number of pods of the group on a node, at least 1.
func (g *Group) podsPerNode() int { return max(1, g.Constraint.PodsPerNode) }

// pods returns the number of pods that wait for a node.
func (g *Group) pods() (count int) {
	for _, n := range g.Kinds {
		count += n
	}
	return count
}

// ableLabel marks nodes that can take a pod. No real label can have this key.
const (
	ableLabel = device.AbleLabel
	mostAble  = "nodes.filter(n, '" + ableLabel + "' in n.labels).size()"
)

// able returns the nodes for [Search.NearestMiss]. Every node that the specification of the pods permits is a candidate. Nodes
// that can take a pod get the label ableLabel, which the expression mostAble counts.
func able(nodes []Node) []Node {
	result := slices.Clone(nodes)
	for i := range result {
		n := &result[i]
		if n.Placed || slices.Contains(n.Takes, true) {
			n.Labels = maps.Clone(n.Labels)
			if n.Labels == nil {
				n.Labels = map[string]string{}
			}
			n.Labels[ableLabel] = ""
		}
		n.Takes = []bool{len(n.Elsewhere) == 0 || slices.Contains(n.Elsewhere, false)}
	}
	return result
}

// takes is an attribute of a member. Its values are the node and those devices that no other pod of the group may get. If
// expressions read devices, a node has a member for each set of devices that a pod may get there.
const takes = "takes"

// definitionName is the name of the constraint and of the preference in the claim of a group.
const definitionName = "nodes"

// ofRequest is an attribute of a member if there are several requests. Its value is the name of the request that the member is for.
const ofRequest = "request"

const (
	placedPrefix = "placed"
	otherPrefix  = "kind"
)

// request asks for a number of nodes of a set.
type request struct {
	// name is the name of the request. The attribute ofRequest of its nodes has the same value.
	name  string
	count int
	// placed is true if the request is for nodes where pods of the group run.
	placed bool
	// kind is the kind of the pods on these nodes, if expressions read devices.
	kind int
	// load holds the pods of the group that each of these nodes gets, if expressions read pods.
	load Load
}

// selects returns a selector for the members of a request.
func selects(request string) []resourceapi.DeviceSelector {
	return []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{
		Expression: fmt.Sprintf("device.attributes[%q].?%s.orValue('') == '%s'", device.NodeDriver, ofRequest, request),
	}}}
}

// Problem is the search for sets of a given size, expressed as a claim for package allocator.
type Problem struct {
	*Group
	// requests holds one request for the nodes where pods of the group run, and one for the other nodes. If expressions read devices
	// or pods, each kind of pods or each load has requests of its own.
	requests []request
	// takes reports whether a node can take a load, if expressions read pods.
	takes func(node int, load Load) bool
	// isAble is set for the nearest miss, if expressions read pods. It reports whether a node can take a load, whereas takes permits
	// every node where the pods may run.
	isAble func(node int, load Load) bool
	// nearest replaces the preference by the number of nodes that can take a pod.
	nearest bool
	// sharesDevices permits that several pods get the same device. It matters only if expressions read devices.
	sharesDevices bool
	// Claim is the claim that represents the group. Groups with equal claims share compiled expressions.
	Claim *resourceapi.ResourceClaim
}

// NewProblem returns the problem of a group for sets with the placed nodes and the wanted numbers of other nodes. If expressions
// read devices, wanted has one number for each kind of pods. Otherwise it has at most one number.
func NewProblem(group *Group, placed int, wanted ...int) (*Problem, error) {
	return newProblem(&Problem{Group: group, requests: requestsFor(placed, wanted)})
}

func requestsFor(placed int, wanted []int) (all []request) {
	if placed > 0 {
		all = append(all, request{name: placedPrefix, count: placed, placed: true})
	}
	for kind, count := range wanted {
		if count > 0 {
			all = append(all, request{name: otherPrefix + strconv.Itoa(kind), count: count, kind: kind})
		}
	}
	return all
}

func newProblem(p *Problem) (_ *Problem, err error) {
	p.Claim, err = p.claim()
	return p, err
}

// Size returns the number of nodes of a set.
func (p *Problem) Size() (size int) {
	for i := range p.requests {
		size += p.requests[i].count
	}
	return size
}

// isPlain reports whether there is one request and all candidates are for it.
func (p *Problem) isPlain() bool {
	return len(p.requests) == 1 && !p.requests[0].placed && (!p.ReadsDevices || len(p.Kinds) < 2)
}

// claim returns the claim that represents the group. Its UID is a hash of its content.
func (p *Problem) claim() (*resourceapi.ResourceClaim, error) {
	c := p.Constraint
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
	for i := range p.requests {
		wanted := &p.requests[i]
		request := resourceapi.DeviceRequest{Name: wanted.name, Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: device.NodeDriver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(wanted.count),
		}}
		if !p.isPlain() {
			request.Exactly.Selectors = selects(wanted.name)
		}
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, request)
	}
	claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{
		MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(v1alpha1.AttributeDomain + "/" + definitionName)),
	}}
	if p.ReadsDevices {
		// This constraint comes first, so that the expression is not evaluated if two pods get the same device.
		claim.Spec.Devices.Constraints = slices.Insert(claim.Spec.Devices.Constraints, 0, resourceapi.DeviceConstraint{
			DistinctAttribute: ptr.To(resourceapi.FullyQualifiedName(device.NodeDriver + "/" + takes)),
		})
	}
	meta := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind}
	}
	define := func(definition any) error {
		raw, err := json.Marshal(definition)
		claim.Spec.Devices.Config = append(claim.Spec.Devices.Config, resourceapi.DeviceClaimConfiguration{
			DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
				Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: raw},
			}},
		})
		return err
	}
	if err := define(v1alpha1.CELDeviceConstraint{TypeMeta: meta(v1alpha1.Kind), Name: definitionName, Expression: c.Expression, Variables: c.Variables}); err != nil {
		return nil, err
	}
	preference, variables := c.Preference, c.Variables
	if p.nearest {
		preference, variables = mostAble, nil
	}
	if preference != "" {
		if err := define(v1alpha1.CELDevicePreference{TypeMeta: meta(v1alpha1.PreferenceKind), Name: definitionName, Type: v1alpha1.PreferenceTypeExpression, Expression: preference, Variables: variables}); err != nil {
			return nil, err
		}
	}
	raw, err := json.Marshal(claim)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	claim.UID = types.UID(hex.EncodeToString(sum[:]))
	return claim, nil
}
