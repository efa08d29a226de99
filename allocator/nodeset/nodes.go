// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/cel/device"
)

// Node is a candidate for a set of nodes.
type Node struct {
	Name   string
	Labels map[string]string
	// Slices holds the ResourceSlices of the node.
	Slices []*resourceapi.ResourceSlice
	// Placed is true if the node already runs pods of the group.
	Placed bool
	// Elsewhere is true if the specification of the pods excludes the node, for example by a node selector.
	Elsewhere bool
	// Takes is indexed by the kind of pods. An entry is true if the node can take a pod of this kind. Free is the number of
	// further pods of the group that may run on the node. It is used only if a node may run several pods of the group.
	Takes []bool
	Free  int
	// Sets is indexed by the kind of pods and lists the sets of devices that a pod can get on the node. Has is the set of a pod
	// of the group that already runs there. Both are used only if expressions read devices.
	Sets [][]Set
	Has  Set
}

// reading describes the properties of nodes that expressions read.
type reading struct {
	labels, attributes map[string]bool
	// all is true if the names of the properties can't be determined, so that expressions may read any property.
	all, capacity bool
	// devices is true if expressions read the devices of pods.
	devices bool
}

func readingOf(expressions []*device.Expression) reading {
	r := reading{labels: map[string]bool{}, attributes: map[string]bool{}}
	for _, e := range expressions {
		reads := e.ReadSet()
		r.all = r.all || reads.All
		r.capacity = r.capacity || reads.All || e.ReadsCapacity()
		for name := range reads.Attributes {
			switch full := resourceapi.QualifiedName(name.Domain + "/" + name.ID); full {
			case device.NodeLabel(name.ID):
				r.labels[name.ID] = true
			case device.NodeDevices:
				r.devices = true
			default:
				r.attributes[string(full)] = true
			}
		}
	}
	return r
}

// member is a candidate for the search: a node. If expressions read devices, a node has a member for each kind of pods and each
// set of devices that a pod of this kind can get.
type member struct {
	// node is the index of the node. kind is the kind of the pod, and set is the index in Node.Sets. kind and set are 0 if
	// expressions read no devices.
	node, kind, set int
	properties
}

// Properties implements [allocator.Candidate].
func (m member) Properties() (map[resourceapi.QualifiedName]resourceapi.DeviceAttribute, map[resourceapi.QualifiedName]resourceapi.DeviceCapacity) {
	return m.attributes, m.capacity
}

// members returns the candidates for a set. If expressions may read all labels, it leaves out nodes with more labels than the
// cost limit of expressions allows.
func (p *Problem) members(nodes []Node, r reading) []member {
	all := make([]member, 0, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		if !n.Placed && !slices.Contains(n.Takes, true) || r.all && len(n.Labels) > device.MaxLabels {
			continue
		}
		m := member{node: i, properties: r.ofNode(n)}
		if !p.isPlain() {
			for kind := range p.Wanted {
				m.mark(ofKind(kind), !n.Placed && (!p.ReadsDevices || n.Takes[kind]))
			}
			m.mark(placed, n.Placed)
		}
		switch {
		case !p.ReadsDevices:
			all = append(all, m)
		case n.Placed:
			all = append(all, p.with(m, &n.Has))
		default:
			for kind, sets := range n.Sets {
				for at := range sets {
					if n.Takes[kind] {
						m.kind, m.set = kind, at
						all = append(all, p.with(m, &sets[at]))
					}
				}
			}
		}
	}
	return all
}

// ofNode returns those properties of a node that expressions read.
func (r *reading) ofNode(n *Node) properties {
	result := properties{attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}}
	for key, value := range n.Labels {
		if r.all || r.labels[key] {
			result.attributes[device.NodeLabel(key)] = resourceapi.DeviceAttribute{StringValue: &value}
		}
	}
	if r.all || r.capacity || len(r.attributes) > 0 {
		common := inCommon(n.Slices, *r)
		maps.Copy(result.attributes, common.attributes)
		result.capacity = common.capacity
	}
	return result
}

// mark adds a boolean attribute, which the selectors of requests read.
func (m *member) mark(name string, is bool) {
	m.attributes[resourceapi.QualifiedName(device.NodeDriver+"/"+name)] = resourceapi.DeviceAttribute{BoolValue: &is}
}

// with returns a copy of the member for a pod that gets the given set of devices.
func (p *Problem) with(m member, set *Set) member {
	m.attributes = maps.Clone(m.attributes)
	m.attributes[device.NodeDevices] = set.devices
	mine := []string{strconv.Itoa(m.node)}
	if !p.sharesDevices {
		mine = append(mine, set.shared...)
	}
	m.attributes[device.NodeDriver+"/"+takes] = resourceapi.DeviceAttribute{StringValues: mine}
	if !p.isPlain() {
		for other := range p.Wanted {
			if other != m.kind {
				m.mark(ofKind(other), false)
			}
		}
	}
	return m
}

// properties holds the attributes and capacities of one device, or the common properties of several devices.
type properties struct {
	attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	capacity   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity
}

// inCommon returns the properties that all devices of a driver have in common, in the latest slices of their pools. If two
// drivers have different values for a property, it leaves out the property.
func inCommon(slicesOfNode []*resourceapi.ResourceSlice, r reading) properties {
	type pool struct{ driver, name string }
	generations := map[pool]int64{}
	for _, s := range slicesOfNode {
		at := pool{s.Spec.Driver, s.Spec.Pool.Name}
		generations[at] = max(generations[at], s.Spec.Pool.Generation)
	}
	byDriver := map[string]*properties{}
	for _, s := range slicesOfNode {
		if s.Spec.Pool.Generation < generations[pool{s.Spec.Driver, s.Spec.Pool.Name}] {
			continue
		}
		for i := range s.Spec.Devices {
			own := r.of(s.Spec.Driver, &s.Spec.Devices[i])
			if known := byDriver[s.Spec.Driver]; known == nil {
				byDriver[s.Spec.Driver] = &own
			} else {
				known.keepCommon(own)
			}
		}
	}
	result := properties{map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}, map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{}}
	differs := map[resourceapi.QualifiedName]bool{}
	for _, driver := range slices.Sorted(maps.Keys(byDriver)) {
		for name, value := range byDriver[driver].attributes {
			if other, has := result.attributes[name]; has && !view.IsSameValue(&value, &other) {
				differs[name] = true
			}
			result.attributes[name] = value
		}
		for name, value := range byDriver[driver].capacity {
			if other, has := result.capacity[name]; has && value.Value.Cmp(other.Value) != 0 {
				differs[name] = true
			}
			result.capacity[name] = value
		}
	}
	for name := range differs {
		delete(result.attributes, name)
		delete(result.capacity, name)
	}
	return result
}

// of returns those properties of a device that expressions read. A name without a domain gets the driver as its domain.
func (r reading) of(driver string, d *resourceapi.Device) properties {
	full := func(name resourceapi.QualifiedName) resourceapi.QualifiedName {
		if strings.Contains(string(name), "/") {
			return name
		}
		return resourceapi.QualifiedName(driver + "/" + string(name))
	}
	p := properties{attributes: make(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute, len(r.attributes))}
	for name, value := range d.Attributes {
		if name := full(name); r.all || r.attributes[string(name)] {
			p.attributes[name] = value
		}
	}
	if r.capacity {
		p.capacity = make(map[resourceapi.QualifiedName]resourceapi.DeviceCapacity, len(d.Capacity))
		for name, value := range d.Capacity {
			p.capacity[full(name)] = resourceapi.DeviceCapacity{Value: value.Value}
		}
	}
	return p
}

// keepCommon removes the properties that other lacks or has with different values.
func (p *properties) keepCommon(other properties) {
	for name, value := range p.attributes {
		if o, has := other.attributes[name]; !has || !view.IsSameValue(&value, &o) {
			delete(p.attributes, name)
		}
	}
	for name, value := range p.capacity {
		if o, has := other.capacity[name]; !has || value.Value.Cmp(o.Value) != 0 {
			delete(p.capacity, name)
		}
	}
}
