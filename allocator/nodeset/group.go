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
	// Placed is on how many nodes pods of the group run already: these are in each set.
	Placed int
	// Kinds has, for each kind of the other pods, how many nodes are wanted besides. No node is in two of these.
	Kinds []int
	// ReadsDevices: expressions read what devices the pods get ([Reading.Devices], [Node.Sets]). A node takes one pod then.
	ReadsDevices bool
	// nearest: the set is wanted of which the most nodes can take a pod.
	nearest bool
}

// Nearest is the group for which that set is chosen of all nodes of which most can take a pod, whatever kinds there are and
// whatever is preferred. Its nodes are those that [Able] makes.
func (g *Group) Nearest() *Group {
	nearest := &Group{Namespace: g.Namespace, Name: g.Name, Constraint: g.Constraint, Placed: g.Placed, nearest: true}
	nearest.Kinds = []int{g.Size() - g.Placed}
	return nearest
}

// ableLabel is no key that a label can have.
const (
	ableLabel = "#able"
	mostAble  = "nodes.filter(n, '" + ableLabel + "' in n.labels).size()"
)

// Able has all nodes come into question for a [Group.Nearest] on which the pods may run, and those that can take a pod known to it.
func Able(nodes []Node) []Node {
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

// Size is how many nodes a set has.
func (g *Group) Size() int {
	size := g.Placed
	for _, count := range g.Kinds {
		size += count
	}
	return size
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

// isPlain reports whether all nodes are for the one request there is.
func (g *Group) isPlain() bool { return g.Placed == 0 && len(g.Kinds) == 1 }

// claim is what the search takes the group for. Its UID says all of it.
func (g *Group) claim() (*resourceapi.ResourceClaim, error) {
	c := g.Constraint
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name}}
	want := func(name string, count int) {
		if count == 0 {
			return
		}
		request := resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: device.NodeDriver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(count),
		}}
		if !g.isPlain() {
			request.Exactly.Selectors = selects(name)
		}
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, request)
	}
	want(placed, g.Placed)
	for kind, count := range g.Kinds {
		want(ofKind(kind), count)
	}
	claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{
		MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(v1alpha1.AttributeDomain + "/" + definitionName)),
	}}
	if g.ReadsDevices {
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
	if g.nearest {
		preference, variables = mostAble, nil
	}
	if preference != "" {
		if err := define(v1alpha1.CELDevicePreference{TypeMeta: meta(v1alpha1.PreferenceKind), Name: definitionName, Expression: preference, Variables: variables}); err != nil {
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
