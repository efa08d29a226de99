// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/apis/nearest"
	"github.com/celset/celset/cmd/kubectl-celset/output"
	"github.com/celset/celset/internal/clusterstate"
)

// Options are the options of a picture.
type Options struct {
	// Features are the features of the scheduler. The devices that a node can use depend on them.
	Features structured.Features
	// Row and Col name the attributes for the coordinates, as "domain/name" or "name". If both are empty, the picture uses the
	// attributes in the package comment.
	Row, Col string
	// Claims are the claims that the picture highlights.
	Claims []*resourceapi.ResourceClaim
}

// Picture is the drawing of a node, or of nodes for a group of pods. Picture.yaml in package output is its schema.
type Picture struct {
	output.Meta
	Node   string  `json:"node,omitempty"`
	Group  string  `json:"group,omitempty"`
	Panels []Panel `json:"panels"`
}

// Arrangement says how the places of the devices in a panel were determined.
type Arrangement string

// Arrangements of devices.
const (
	ByCoordinates Arrangement = "coordinates"
	ByLinks       Arrangement = "links"
	ByOrder       Arrangement = "order"
	// ByPlace arranges the devices by their location in the machine, together with all other panels of this arrangement. Row
	// and Col then only give the order of the devices.
	ByPlace Arrangement = "place"
)

// Panel holds the devices of one driver, or the nodes of one group. Only a panel of nodes has a title.
type Panel struct {
	Driver      string      `json:"driver,omitempty"`
	Title       string      `json:"title,omitempty"`
	Arrangement Arrangement `json:"arrangement"`
	Devices     []Device    `json:"devices"`

	// rows and cols are the size of the torus if the devices fill one, and 0 otherwise.
	rows, cols int
	// inLine is set if the devices have only an index, or no coordinates.
	inLine bool
}

// Device is a device in a picture.
type Device struct {
	Pool string `json:"pool,omitempty"`
	Name string `json:"name"`
	// Row and Col are the device's place in the panel, counted from 0.
	Row int `json:"row"`
	Col int `json:"col"`
	// Peers are the labels of linked devices in the same panel.
	Peers []string `json:"peers,omitempty"`
	// NUMANode and PCIeRoots are the known parts of the device's location in the machine. They are set only in panels with
	// arrangement ByPlace.
	NUMANode  *int64   `json:"numaNode,omitempty"`
	PCIeRoots []string `json:"pcieRoots,omitempty"`
	Owners    []Owner  `json:"owners,omitempty"`
	// Taints are the taints, set by the driver or a DeviceTaintRule, that prevent allocation to claims without a toleration.
	// The format is key=value:effect, or key:effect.
	Taints []string `json:"taints,omitempty"`
	// Unusable is set for a node that can't take a pod.
	Unusable bool `json:"unusable,omitempty"`

	// label is the name of the device. If the panel has several pools, it starts with the name of the pool.
	label      string
	attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
}

// title returns the title of the picture.
func (p *Picture) title() string {
	if p.Group != "" {
		return p.Group
	}
	return "node " + p.Node
}

// Owner is a claim that has the device or a share of it.
type Owner struct {
	// Claim is "namespace/name", or the name of the group if the device is a node. Request is the request that the device was
	// allocated for.
	Claim       string `json:"claim"`
	Request     string `json:"request,omitempty"`
	Shared      bool   `json:"shared,omitempty"`
	AdminAccess bool   `json:"adminAccess,omitempty"`
	// Chosen is set for the claim that the picture highlights.
	Chosen bool `json:"chosen,omitempty"`
}

// New returns a picture of the devices of a node.
func New(ctx context.Context, state *clusterstate.State, node *corev1.Node, options Options) (*Picture, error) {
	ids, err := devicesOf(ctx, state, node, options.Features)
	if err != nil {
		return nil, err
	}
	published, owners := devicesByID(state, options.Features.DeviceTaints), state.Owners()
	picture := &Picture{Meta: output.NewMeta(output.Picture), Node: node.Name, Panels: []Panel{}}
	index := make(map[string]int)
	for _, id := range ids {
		driver := id.Driver.String()
		i, found := index[driver]
		if !found {
			i = len(picture.Panels)
			index[driver] = i
			picture.Panels = append(picture.Panels, Panel{Driver: driver})
		}
		device := Device{Pool: id.Pool.String(), Name: id.Device.String(), attributes: published[id].Attributes}
		if options.Features.DeviceTaints {
			device.Taints = Taints(published[id])
		}
		for _, owner := range owners[id] {
			device.Owners = append(device.Owners, ownerOf(owner, options.Claims))
		}
		picture.Panels[i].Devices = append(picture.Panels[i].Devices, device)
	}
	if err := picture.checkNames(options.Row, options.Col); err != nil {
		return nil, err
	}
	for i := range picture.Panels {
		picture.Panels[i].setLabels()
		picture.Panels[i].link()
		picture.Panels[i].arrange(options)
	}
	picture.locate()
	return picture, nil
}

func ownerOf(owner clusterstate.Owner, chosen []*resourceapi.ResourceClaim) Owner {
	return Owner{
		Claim: owner.Claim.Namespace + "/" + owner.Claim.Name, Request: owner.Request,
		Shared: owner.Shared, AdminAccess: owner.AdminAccess, Chosen: slices.Contains(chosen, owner.Claim),
	}
}

func devicesOf(ctx context.Context, state *clusterstate.State, node *corev1.Node, features structured.Features) ([]structured.DeviceID, error) {
	problem := state.Problem(nil, features)
	problem.Slices = state.Slices(false)
	a, err := problem.NewAllocator(ctx)
	if err != nil {
		return nil, err
	}
	return a.NodeDevices(node)
}

func devicesByID(state *clusterstate.State, withTaintRules bool) map[structured.DeviceID]*resourceapi.Device {
	result := make(map[structured.DeviceID]*resourceapi.Device)
	for _, slice := range state.Slices(withTaintRules) {
		for i := range slice.Spec.Devices {
			device := &slice.Spec.Devices[i]
			result[structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, device.Name)] = device
		}
	}
	return result
}

// named returns the name of an attribute. If withDomain is set, it adds the domain, which is the driver for a name without a
// domain.
func named(name resourceapi.QualifiedName, driver string, withDomain bool) string {
	domain, id, qualified := strings.Cut(string(name), "/")
	if !qualified {
		domain, id = driver, string(name)
	}
	if withDomain {
		return domain + "/" + id
	}
	return id
}

// Taints returns the taints that prevent new allocations of a device.
func Taints(device *resourceapi.Device) []string {
	var taints []string
	for _, taint := range device.Taints {
		if taint.Effect == resourceapi.DeviceTaintEffectNoSchedule || taint.Effect == resourceapi.DeviceTaintEffectNoExecute {
			key := taint.Key
			if taint.Value != "" {
				key += "=" + taint.Value
			}
			taints = append(taints, fmt.Sprintf("%s:%s", key, taint.Effect))
		}
	}
	return taints
}

// checkNames returns an error for a name if no device in the picture has an int attribute with this name.
func (p *Picture) checkNames(names ...string) error {
	for _, name := range names {
		if name == "" {
			continue
		}
		var others []string
		found := false
		for i := range p.Panels {
			for k := range p.Panels[i].Devices {
				device := &p.Panels[i].Devices[k]
				value, has := device.attribute(name)
				found = found || has && value.IntValue != nil
				for full, value := range device.attributes {
					if value.IntValue != nil {
						others = append(others, named(full, p.Panels[i].Driver, strings.Contains(name, "/")))
					}
				}
			}
		}
		if found || len(p.Panels) == 0 {
			continue
		}
		slices.Sort(others)
		others = slices.Compact(others)
		return fmt.Errorf("no device of %s has an int as attribute %q%s", p.title(), name, nearest.DidYouMean("", name, slices.Values(others)))
	}
	return nil
}

// NodeOf returns the first node that has a device of the allocated claim.
func NodeOf(ctx context.Context, state *clusterstate.State, claim *resourceapi.ResourceClaim, features structured.Features) (*corev1.Node, error) {
	wanted := make(map[structured.DeviceID]bool)
	if allocation := claim.Status.Allocation; allocation != nil {
		for _, result := range allocation.Devices.Results {
			wanted[structured.MakeDeviceID(result.Driver, result.Pool, result.Device)] = true
		}
	}
	for _, node := range state.Nodes() {
		ids, err := devicesOf(ctx, state, node, features)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if wanted[id] {
				return node, nil
			}
		}
	}
	return nil, fmt.Errorf("no node has the devices of claim %s/%s", claim.Namespace, claim.Name)
}

func (p *Panel) setLabels() {
	for i := range p.Devices {
		device := &p.Devices[i]
		device.label = device.Name
		if device.Pool != p.Devices[0].Pool {
			p.labelWithPools()
			return
		}
	}
}

func (p *Panel) labelWithPools() {
	for i := range p.Devices {
		p.Devices[i].label = p.Devices[i].Pool + "/" + p.Devices[i].Name
	}
}
