// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/cmd/kubectl-celset/draw"
	"github.com/celset/celset/internal/clusterstate"
)

// node answers the question [Node].
func (a *Answers) node(ctx context.Context, question NodeQuestion) (*NodeAnswer, error) {
	current, err := a.current(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := current.state.ChosenNodes([]string{question.Name})
	if err != nil {
		return nil, err
	}
	node, caption := nodes[0], "devices of node "+question.Name
	var chosen []*resourceapi.ResourceClaim
	if question.Claim != "" {
		namespace, name, _ := strings.Cut(question.Claim, "/")
		claim := current.state.Claim(namespace, name)
		if claim == nil {
			return nil, fmt.Errorf("there is no claim %q", question.Claim)
		}
		chosen, caption = append(chosen, claim), "devices of claim "+question.Claim
	}
	state := clusterstate.New(onNode(current.state, node))
	picture, err := a.picture(ctx, state, node, chosen, caption)
	if err != nil {
		return nil, err
	}
	return &NodeAnswer{Picture: *picture}, nil
}

// onNode returns the objects that the devices of a node depend on: slices of pools that may have devices for the node, and
// claims with devices of these pools. So the cost of a picture does not grow with the cluster.
func onNode(state *clusterstate.State, node *corev1.Node) *clusterstate.Objects {
	type pool struct{ driver, name string }
	pools := sets.New[pool]()
	for _, slice := range state.Objects.Slices {
		if name := ptr.Deref(slice.Spec.NodeName, ""); name == "" || name == node.Name {
			pools.Insert(pool{slice.Spec.Driver, slice.Spec.Pool.Name})
		}
	}
	part := &clusterstate.Objects{
		Classes: slices.Clone(state.Objects.Classes), Templates: slices.Clone(state.Templates), Groups: slices.Clone(state.Groups),
		Amendments: state.Amendments, Nodes: []*corev1.Node{node}, Pods: slices.Clone(state.On(node.Name)), HasCluster: state.HasCluster,
	}
	part.RunningUnknown = state.RunningUnknown
	part.TaintRules, part.Attributes = slices.Clone(part.TaintRules), slices.Clone(part.Attributes)
	for _, slice := range state.Objects.Slices {
		if pools.Has(pool{slice.Spec.Driver, slice.Spec.Pool.Name}) {
			part.Slices = append(part.Slices, slice)
		}
	}
	for _, claim := range state.Claims {
		if slices.ContainsFunc(resultsOf(claim), func(r resourceapi.DeviceRequestAllocationResult) bool { return pools.Has(pool{r.Driver, r.Pool}) }) {
			part.Claims = append(part.Claims, claim)
		}
	}
	return part
}

func resultsOf(claim *resourceapi.ResourceClaim) []resourceapi.DeviceRequestAllocationResult {
	if claim.Status.Allocation == nil {
		return nil
	}
	return claim.Status.Allocation.Devices.Results
}

// picture draws a node with highlighted claims, and lists its devices.
func (a *Answers) picture(ctx context.Context, state *clusterstate.State, node *corev1.Node, chosen []*resourceapi.ResourceClaim, caption string) (*Picture, error) {
	drawing, err := draw.New(ctx, state, node, draw.Options{Features: a.Features, Claims: chosen})
	if err != nil {
		return nil, err
	}
	picture, err := pictureOf(drawing, node.Name, caption)
	if err != nil {
		return nil, err
	}
	picture.Devices, err = a.devices(ctx, state, node)
	return picture, err
}

func pictureOf(drawing *draw.Picture, node, caption string) (*Picture, error) {
	var svg bytes.Buffer
	if err := drawing.PlainSVG(&svg); err != nil {
		return nil, err
	}
	return &Picture{Node: node, Caption: caption, SVG: svg.String()}, nil
}

// devices lists the devices of a node, in the order of the search.
func (a *Answers) devices(ctx context.Context, state *clusterstate.State, node *corev1.Node) ([]Device, error) {
	problem := state.Problem(nil, a.Features)
	allocator, err := problem.NewAllocator(ctx)
	if err != nil {
		return nil, err
	}
	ids, err := allocator.NodeDevices(node)
	if err != nil {
		return nil, err
	}
	published, owners := map[structured.DeviceID]*resourceapi.Device{}, state.Owners()
	for _, slice := range state.Slices(a.Features.DeviceTaints) {
		for i := range slice.Spec.Devices {
			published[structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.Devices[i].Name)] = &slice.Spec.Devices[i]
		}
	}
	devices := make([]Device, 0, len(ids))
	for _, id := range ids {
		device := Device{Driver: id.Driver.String(), Pool: id.Pool.String(), Name: id.Device.String()}
		if of := published[id]; of != nil {
			device.Attributes = attributesOf(of)
			if a.Features.DeviceTaints {
				device.Taints = draw.Taints(of)
			}
		}
		for _, owner := range owners[id] {
			device.Holders = append(device.Holders, holderOf(owner))
		}
		devices = append(devices, device)
	}
	return devices, nil
}

func holderOf(owner clusterstate.Owner) Holder {
	holder := Holder{Claim: owner.Claim.Namespace + "/" + owner.Claim.Name, Request: owner.Request, Shared: owner.Shared, AdminAccess: owner.AdminAccess}
	for _, user := range owner.Claim.Status.ReservedFor {
		holder.ReservedFor = append(holder.ReservedFor, strings.TrimSuffix(user.Resource, "s")+"/"+user.Name)
	}
	return holder
}

// attributesOf returns the attributes and capacities of a device as text. The names of capacities begin with "capacity ".
func attributesOf(device *resourceapi.Device) map[string]string {
	texts := make(map[string]string, len(device.Attributes)+len(device.Capacity))
	for name, value := range device.Attributes {
		texts[string(name)] = attributeText(&value)
	}
	for name, capacity := range device.Capacity {
		texts["capacity "+string(name)] = capacity.Value.String()
	}
	return texts
}

func attributeText(value *resourceapi.DeviceAttribute) string {
	switch {
	case value.IntValue != nil:
		return fmt.Sprint(*value.IntValue)
	case value.BoolValue != nil:
		return fmt.Sprint(*value.BoolValue)
	case value.StringValue != nil:
		return *value.StringValue
	case value.VersionValue != nil:
		return *value.VersionValue
	case value.IntValues != nil:
		return fmt.Sprint(value.IntValues)
	case value.BoolValues != nil:
		return fmt.Sprint(value.BoolValues)
	case value.StringValues != nil:
		return fmt.Sprintf("%q", value.StringValues)
	default:
		return fmt.Sprintf("%q", value.VersionValues)
	}
}
