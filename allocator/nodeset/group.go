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

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device"
)

// Group is a group of pods for which nodes are chosen.
type Group struct {
	Namespace, Name string
	Constraint      *v1alpha1.NodeSetConstraint
	// Kinds has the number of pods of each kind that wait for a node.
	Kinds []int
	// Least is the number of pods for which nodes are chosen if there are none for all of them. 0 means all.
	Least int
	// ReadsDevices reports whether expressions read the devices that pods get ([Reading.Devices], [Node.Sets]). A node takes
	// one pod of the group then.
	ReadsDevices bool
}

// podsPerNode is at least 1.
func (g *Group) podsPerNode() int { return max(1, g.Constraint.PodsPerNode) }

// pods is the number of pods that wait.
func (g *Group) pods() (count int) {
	for _, n := range g.Kinds {
		count += n
	}
	return count
}

// ableLabel is no key that a label can have.
const (
	ableLabel = device.AbleLabel
	mostAble  = "nodes.filter(n, '" + ableLabel + "' in n.labels).size()"
)

// able has all nodes on which the pods may run come into question. The expression [mostAble] counts those that can take a pod.
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
		n.Takes = []bool{!n.Elsewhere}
	}
	return result
}

// takes are the devices that no other pod of the group may get, and the node, of a member: where expressions read devices
// there is one for each set of devices that a pod may get on a node.
const takes = "takes"

// The claim that stands for a group calls its constraint and its preference so.
const definitionName = "nodes"

// Requests select nodes by attributes of [device.NodeDriver]. A request is called as its attribute.
const (
	placed     = "placed"
	kindPrefix = "kind"
)

func ofKind(kind int) string { return kindPrefix + strconv.Itoa(kind) }

// selects returns the selector of nodes that have the attribute.
func selects(attribute string) []resourceapi.DeviceSelector {
	return []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{
		Expression: fmt.Sprintf("device.attributes[%q].%s", device.NodeDriver, attribute),
	}}}
}

// Problem is a search for sets of a certain size, as package allocator knows it.
type Problem struct {
	*Group
	// Placed is the number of nodes on which pods of the group run. They are in every set.
	Placed int
	// Wanted is the number of other nodes. It has one entry for each kind of pods if expressions read devices, else one.
	Wanted []int
	// nearest asks for the set in which the most nodes can take a pod, whatever is preferred.
	nearest bool
	// sharesDevices has several pods get the same device, where expressions read devices.
	sharesDevices bool
	// Claim stands for the group. Groups with equal claims share what is compiled.
	Claim *resourceapi.ResourceClaim
}

// NewProblem makes the claim of a group for sets with the nodes on which pods run already and so many others.
func NewProblem(group *Group, placed int, wanted ...int) (*Problem, error) {
	return newProblem(&Problem{Group: group, Placed: placed, Wanted: wanted})
}

func newProblem(p *Problem) (_ *Problem, err error) {
	p.Claim, err = p.claim()
	return p, err
}

// Size is the number of nodes of a set.
func (p *Problem) Size() int {
	size := p.Placed
	for _, count := range p.Wanted {
		size += count
	}
	return size
}

// isPlain reports whether all nodes are for the one request there is.
func (p *Problem) isPlain() bool { return p.Placed == 0 && len(p.Wanted) == 1 }

// claim is what the search takes the group for. Its UID says all of it.
func (p *Problem) claim() (*resourceapi.ResourceClaim, error) {
	c := p.Constraint
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
	want := func(name string, count int) {
		if count == 0 {
			return
		}
		request := resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: device.NodeDriver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(count),
		}}
		if !p.isPlain() {
			request.Exactly.Selectors = selects(name)
		}
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, request)
	}
	want(placed, p.Placed)
	for kind, count := range p.Wanted {
		want(ofKind(kind), count)
	}
	claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{
		MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(v1alpha1.AttributeDomain + "/" + definitionName)),
	}}
	if p.ReadsDevices {
		// It comes first: the expression is not asked about pods that get the same devices.
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
