// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

func nodeSet(name, expression, more string) string {
	return fmt.Sprintf(`{"apiVersion":"celset.dev/v1alpha1","kind":"CELNodeSetConstraint","name":%q,"expression":%q%s}`, name, expression, more)
}

func opaque(parameters string) resourceapi.DeviceConfiguration {
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: []byte(parameters)},
	}}
}

func claimWith(name, class string, parameters ...string) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "r", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class}}}
	for _, p := range parameters {
		claim.Spec.Devices.Config = append(claim.Spec.Devices.Config, resourceapi.DeviceClaimConfiguration{DeviceConfiguration: opaque(p)})
	}
	return claim
}

func group(annotation string) *schedulingapi.PodGroup {
	g := &schedulingapi.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "default"}}
	if annotation != "" {
		g.Annotations = map[string]string{v1alpha1.NodeSetAnnotation: annotation}
	}
	return g
}

type classesByName map[string]*resourceapi.DeviceClass

func (c classesByName) Get(name string) (*resourceapi.DeviceClass, error) {
	if class := c[name]; class != nil {
		return class, nil
	}
	return nil, fmt.Errorf("there is no class %s", name)
}

func TestResolveNodeSet(t *testing.T) {
	tpu := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "tpu"}}
	tpu.Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: opaque(nodeSet("torus_4x4", "class", ""))}}
	ring := `{"apiVersion":"celset.dev/v1alpha1","kind":"CELDeviceConstraint","name":"ring","expression":"true"}`
	for name, test := range map[string]struct {
		group     *schedulingapi.PodGroup
		claims    []*resourceapi.ResourceClaim
		want, err string
	}{
		"annotation": {group("apiVersion: celset.dev/v1alpha1\nkind: CELNodeSetConstraint\nname: torus_4x4\nexpression: own\n"), nil, "own", ""},
		"claim":      {group(""), []*resourceapi.ResourceClaim{claimWith("a", "tpu", ring, nodeSet("torus_4x4", "claim", ""))}, "claim", ""},
		"class":      {group(""), []*resourceapi.ResourceClaim{claimWith("a", "gone"), claimWith("b", "tpu")}, "class", ""},
		"two that agree": {group(""), []*resourceapi.ResourceClaim{
			claimWith("a", "", nodeSet("torus_4x4", "claim", "")), claimWith("b", "", nodeSet("torus_4x4", "claim", `,"podsPerNode":1`)), claimWith("c", "", nodeSet("torus_4x4", "claim", `,"podsPerNode":null`)),
		}, "claim", ""},
		"two that differ": {group(""), []*resourceapi.ResourceClaim{
			claimWith("a", "", nodeSet("torus_4x4", "claim", "")), claimWith("b", "", nodeSet("torus_4x4", "other", "")),
		}, "", "PodGroup default/train: spec.schedulingConstraints.topology[0].key: Invalid value: \"celset.dev/torus_4x4\": ResourceClaim default/a spec.devices.config[0] and ResourceClaim default/b spec.devices.config[0] define the constraint differently"},
		"none":             {group(""), nil, "", "no CELNodeSetConstraint of that name in the claims of the group's pods"},
		"misspelt":         {group(nodeSet("torus_4x5", "own", "")), nil, "", `did you mean "celset.dev/torus_4x5"?`},
		"not YAML":         {group("{"), nil, "", "PodGroup default/train: metadata.annotations[celset.dev/node-set-constraint]: Invalid value: must be a CELNodeSetConstraint as YAML or JSON"},
		"another kind":     {group(ring), nil, "", `metadata.annotations[celset.dev/node-set-constraint].kind: Unsupported value: "CELDeviceConstraint": supported values: "CELNodeSetConstraint"`},
		"unknown field":    {group(nodeSet("torus_4x4", "own", `,"podPerNode":2`)), nil, "", "podPerNode: Invalid value: unknown field"},
		"no expression":    {group(nodeSet("torus_4x4", " ", "")), nil, "", "expression: Required value: must be a CEL expression over `nodes` that returns a bool"},
		"no name":          {group(nodeSet("", "own", "")), nil, "", "name: Required value: PodGroups refer to the constraint with the topology key celset.dev/<name>"},
		"not a name":       {group(nodeSet("torus-4x4", "own", "")), nil, "", `name: Invalid value: "torus-4x4": a valid C identifier must start with`},
		"a long name":      {group(nodeSet(strings.Repeat("t", 33), "own", "")), nil, "", "name: Too long: may not be more than 32 bytes"},
		"not a key":        {group(nodeSet("torus_", "own", "")), nil, "", `name: Invalid value: "torus_": name part must consist of`},
		"too many":         {group(nodeSet("torus_4x4", "own", `,"podsPerNode":257`)), nil, "", "podsPerNode: Invalid value: 257: must be between 1 and 256"},
		"zero":             {group(nodeSet("torus_4x4", "own", `,"podsPerNode":0`)), nil, "", "podsPerNode: Invalid value: 0: must be between 1 and 256"},
		"no number":        {group(nodeSet("torus_4x4", "own", `,"podsPerNode":"2"`)), nil, "", "podsPerNode: Invalid value: must be an integer, but is: string"},
		"less than none":   {group(nodeSet("torus_4x4", "own", `,"podsPerNode":-1`)), nil, "", "podsPerNode: Invalid value: -1"},
		"too long":         {group(nodeSet("torus_4x4", strings.Repeat("a", 6000), `,"preference":"`+strings.Repeat("b", 6000)+`"`)), nil, "", "expression: Too long: may not be more than 10240 bytes"},
		"huge":             {group(strings.Repeat("a", v1alpha1.MaxNodeSetText+1)), nil, "", "Too long: may not be more than 16384 bytes"},
		"variable":         {group(nodeSet("torus_4x4", "own", `,"variables":[{"name":"x"}]`)), nil, "", "variables[0].expression: Required value: must be a CEL expression over `node`"},
		"twice in a claim": {group(""), []*resourceapi.ResourceClaim{claimWith("a", "", nodeSet("torus_4x4", "x", ""), nodeSet("torus_4x4", "y", ""))}, "", "spec.devices.config[1].opaque.parameters.name: Duplicate value"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := v1alpha1.GroupNodeSet(test.group)
			if err == nil {
				got, err = v1alpha1.ResolveNodeSet(test.group, got, "torus_4x4", test.claims, classesByName{"tpu": tpu})
			}
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, got.Expression)
			require.Equal(t, 1, got.PodsPerNode)
		})
	}
}

// TestNodeSetsAreNoDeviceConstraints tests that a node set constraint does not count as a constraint on the devices of a claim.
func TestNodeSetsAreNoDeviceConstraints(t *testing.T) {
	claim := claimWith("a", "tpu", nodeSet("torus_4x4", "nodes.size() > 1", ""))
	constraints, err := v1alpha1.Resolve(claim, classesByName{"tpu": {}})
	require.NoError(t, err)
	require.Empty(t, constraints)
	require.False(t, v1alpha1.HasDefinition(claim))
}

func TestNodeSetReference(t *testing.T) {
	g := group("")
	_, ok := v1alpha1.NodeSetReference(g)
	require.False(t, ok)
	g.Spec.SchedulingConstraints = &schedulingapi.PodGroupSchedulingConstraints{Topology: []schedulingapi.TopologyConstraint{{Key: "topology.kubernetes.io/rack"}}}
	_, ok = v1alpha1.NodeSetReference(g)
	require.False(t, ok)
	g.Spec.SchedulingConstraints.Topology[0].Key = "celset.dev/torus_4x4"
	name, ok := v1alpha1.NodeSetReference(g)
	require.True(t, ok)
	require.Equal(t, "torus_4x4", name)
}
