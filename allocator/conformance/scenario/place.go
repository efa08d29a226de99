// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	nodeName  = "node-1"
	otherNode = "node-2"
	zoneLabel = "topology.kubernetes.io/zone"
	rackLabel = "example.com/rack"
	// skipsNodeOperations is the feature that a node declares if it supports skipping node operations.
	skipsNodeOperations = "DRAOptionalNodeOperations"
)

func (g *generator) node() {
	g.Node = &v1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:   nodeName,
		Labels: map[string]string{zoneLabel: "zone-1", rackLabel: pick(g, "rack-1", "rack-2")},
	}}
	if !g.sometimes() {
		g.Node.Status.DeclaredFeatures = []string{skipsNodeOperations}
	}
}

// A placement determines which nodes can use a slice or a device.
type placement struct {
	nodeName *string
	allNodes *bool
	selector *v1.NodeSelector
	// perDevice is nil for a device. A slice with perDevice leaves the placement to its devices.
	perDevice *bool
}

// placeHere draws a placement that includes the node.
func (g *generator) placeHere() placement {
	switch g.fairly(2) {
	case 0:
		return placement{nodeName: ptr.To(nodeName)}
	case 1:
		return placement{allNodes: ptr.To(true)}
	default:
		return placement{selector: g.nodeSelector("zone-1")}
	}
}

// placeElsewhere draws a placement that excludes the node: another node, a selector that does not match, or an unknown form.
func (g *generator) placeElsewhere() placement {
	switch g.fairly(2) {
	case 0:
		return placement{nodeName: ptr.To(otherNode)}
	case 1:
		return placement{selector: g.nodeSelector("zone-2")}
	case 2:
		return placement{}
	default:
		return placement{allNodes: ptr.To(false)}
	}
}

// nodeSelector draws a selector with one term that matches a zone, or a rack in the zone.
func (g *generator) nodeSelector(zone string) *v1.NodeSelector {
	if g.fault() {
		return g.faultyNodeSelector()
	}
	var term v1.NodeSelectorTerm
	values := []string{zone}
	if g.sometimes() {
		values = pick(g, []string{zone, "zone-3"}, []string{"zone-3", zone})
	}
	term.MatchExpressions = append(term.MatchExpressions,
		v1.NodeSelectorRequirement{Key: zoneLabel, Operator: v1.NodeSelectorOpIn, Values: values})
	if g.sometimes() {
		term.MatchExpressions = append(term.MatchExpressions,
			v1.NodeSelectorRequirement{Key: rackLabel, Operator: v1.NodeSelectorOpExists})
	}
	if g.rarely() {
		term.MatchExpressions = append(term.MatchExpressions,
			v1.NodeSelectorRequirement{Key: rackLabel, Operator: v1.NodeSelectorOpNotIn, Values: []string{"rack-2"}})
	}
	if g.sometimes() {
		term.MatchFields = append(term.MatchFields,
			v1.NodeSelectorRequirement{Key: "metadata.name", Operator: v1.NodeSelectorOpNotIn, Values: []string{otherNode}})
	}
	return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}}
}

// faultyNodeSelector draws a selector without terms, with more terms than results support, or with an unknown operator.
func (g *generator) faultyNodeSelector() *v1.NodeSelector {
	term := func(operator v1.NodeSelectorOperator, values ...string) v1.NodeSelectorTerm {
		return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: zoneLabel, Operator: operator, Values: values}}}
	}
	switch g.between(0, 2) {
	case 0:
		return &v1.NodeSelector{}
	case 1:
		return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
			term(v1.NodeSelectorOpExists), term(v1.NodeSelectorOpDoesNotExist)}}
	default:
		return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term("Near", "zone-1")}}
	}
}

func (p placement) applyToSlice(slice *resourceapi.ResourceSlice) {
	slice.Spec.NodeName, slice.Spec.AllNodes, slice.Spec.NodeSelector = p.nodeName, p.allNodes, p.selector
	slice.Spec.PerDeviceNodeSelection = p.perDevice
}

func (p placement) applyToDevice(device *resourceapi.Device) {
	device.NodeName, device.AllNodes, device.NodeSelector = p.nodeName, p.allNodes, p.selector
}
